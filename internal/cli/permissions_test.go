package cli_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/tools/clientcmd"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
)

// reader returns a kubeconfig of a user with permission to read packages only.
func (b bench) reader(t *testing.T) string {
	t.Helper()
	user := "reader-" + strings.ToLower(t.Name())
	env.Grant(t, b.client, env.User(user), rbacv1.PolicyRule{
		APIGroups: []string{v1.Group}, Resources: []string{"providers", "configurations", "functions"},
		Verbs: []string{"get", "list"},
	})
	config, err := clientcmd.LoadFromFile(b.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range config.AuthInfos {
		info.Impersonate = user
	}
	file := filepath.Join(b.dir, user)
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// A user with permission to read packages only can list them.
func TestListWithFewPermissions(t *testing.T) {
	b := newBench(t)
	b.must(t, 0, "install", "provider", b.push(t, "listed", "v1", "Ferry"), "listed", "--wait", "1m")
	var out, errs bytes.Buffer
	terminal := &cli.Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs}
	if code := cli.Main(t.Context(), []string{"xpkg", "list", "--kubeconfig", b.reader(t)}, terminal); code != 0 {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
	checkMatches(t, out.String(), `^provider/listed +True +True `)
	b.must(t, 0, "uninstall", "provider", "listed", "--yes", "--on-delete", "cascade=100", "--wait", "1m")
}
