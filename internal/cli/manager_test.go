package cli_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/cli"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
)

// TestManagerReportsAMissingNamespace proves that the manager does not start in a namespace that
// does not exist, with and without leader election.
func TestManagerReportsAMissingNamespace(t *testing.T) {
	cluster.Start(t)
	for _, flags := range [][]string{nil, {"--leader-election"}} {
		var out, errs bytes.Buffer
		env := &cli.Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs}
		args := append([]string{
			"xpkg", "manager", "--namespace", "missing", "--kubeconfig", cluster.Kubeconfig(t), "--cache-dir", t.TempDir(),
		}, flags...)
		if code := cli.Main(t.Context(), args, env); code != 5 {
			t.Errorf("%q: exit code %d", flags, code)
		}
		checkMatches(
			t, errs.String(),
			"^error: NamespaceNotFound: the namespace missing does not exist\n  Run `kubectl create namespace missing`",
		)
	}
}

// TestManagerReportsAnAddressInUse proves that an address on which the manager cannot listen is not
// reported as a problem of the cluster.
func TestManagerReportsAnAddressInUse(t *testing.T) {
	cluster.Start(t)
	for _, address := range []string{"999", cluster.Registry(t)} {
		var out, errs bytes.Buffer
		env := &cli.Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs}
		args := []string{
			"xpkg", "manager", "--namespace", "default", "--kubeconfig", cluster.Kubeconfig(t), "--cache-dir", t.TempDir(),
			"--metrics-address", address,
		}
		if code := cli.Main(t.Context(), args, env); code != 3 {
			t.Errorf("%q: exit code %d", address, code)
		}
		checkMatches(t, errs.String(), "error: Usage: the manager cannot serve metrics or health checks: ")
	}
}
