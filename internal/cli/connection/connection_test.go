package connection

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gofrs/flock"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/xpkg-dev/xpkg/internal/up"
	"github.com/xpkg-dev/xpkg/internal/up/datadir"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// The error without a cluster does not refer to a variable that xpkg does not read.
//
// hardening: L5
func TestNoCluster(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	home := clientcmd.RecommendedHomeFile
	clientcmd.RecommendedHomeFile = filepath.Join(t.TempDir(), "none")
	t.Cleanup(func() { clientcmd.RecommendedHomeFile = home })
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	for file, want := range map[string]string{
		"":          "no kubeconfig exists, and no control plane runs on this machine",
		"/dev/null": "the kubeconfig contains no cluster",
	} {
		_, err := ClusterFlags{Kubeconfig: file}.Config(t.Context())
		if !errors.Is(err, ErrKubeconfig) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v", file, err)
		}
	}
}

// writeKubeconfig writes a kubeconfig for a server.
func writeKubeconfig(t *testing.T, path, server string) string {
	t.Helper()
	config := "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c}}]\n" +
		"clusters: [{name: c, cluster: {server: " + server + "}}]\n"
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(config), 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

// startPlane makes a data directory like the one of a control plane that runs.
func startPlane(t *testing.T, dir, server string) string {
	t.Helper()
	kubeconfig := writeKubeconfig(t, filepath.Join(dir, "kubeconfig"), server)
	for name, content := range map[string]string{
		datadir.StateName: `{"kubeconfig":"` + kubeconfig + `"}`, "version.json": `{"kind":"xpkg control plane","layout":1}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lock := flock.New(filepath.Join(dir, datadir.LockName), flock.SetPermissions(0o600))
	if ok, err := lock.TryLock(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	t.Cleanup(func() { _ = lock.Close() })
	return dir
}

// Commands agree on the cluster: a flag, a variable, the file in the home directory and the
// control plane of this machine, in this order.
func TestPrecedenceOfClusters(t *testing.T) {
	dir := t.TempDir()
	file := writeKubeconfig(t, filepath.Join(dir, "file"), "http://variable:1")
	chosen, other := startPlane(t, filepath.Join(dir, "chosen"), "http://chosen:1"),
		startPlane(t, filepath.Join(dir, "other"), "http://other:1")
	home, noHome := writeKubeconfig(t, filepath.Join(dir, "home"), "http://home:1"), filepath.Join(dir, "none")
	t.Setenv("XDG_DATA_HOME", filepath.Join(dir, "share"))
	startPlane(t, filepath.Join(dir, "share", "xpkg", "default"), "http://default:1")
	recommended := clientcmd.RecommendedHomeFile
	t.Cleanup(func() { clientcmd.RecommendedHomeFile = recommended })
	for _, test := range []struct {
		flags                            ClusterFlags
		variable, dataDir, home, cluster string
	}{
		{ClusterFlags{Kubeconfig: file, PlaneDir: other}, "absent", chosen, home, "http://variable:1"},
		{ClusterFlags{PlaneDir: other}, file, chosen, home, "http://variable:1"},
		{ClusterFlags{PlaneDir: other}, "", chosen, home, "http://other:1"},
		{ClusterFlags{}, "", chosen, home, "http://chosen:1"},
		{ClusterFlags{}, "", "", home, "http://home:1"},
		{ClusterFlags{}, "", "", noHome, "http://default:1"},
		{ClusterFlags{}, "", filepath.Join(dir, "stopped"), home, ""},
	} {
		t.Setenv("KUBECONFIG", test.variable)
		t.Setenv("XPKG_DATA_DIR", test.dataDir)
		clientcmd.RecommendedHomeFile = test.home
		cfg, err := test.flags.Config(t.Context())
		switch {
		case test.cluster == "":
			if do := "xpkg up --detach --data-dir " + test.dataDir; !errors.Is(err, up.ErrNotRunning) ||
				!strings.Contains(errcode.From(err).Do, do) {
				t.Errorf("%+v: got %v, want %s with %s", test, err, up.ErrNotRunning.Name, do)
			}
		case err != nil || cfg.Host != test.cluster:
			t.Errorf("%+v: got %v, %v", test, cfg, err)
		}
	}
}

// A command waits for a control plane that starts, and ends if it is interrupted meanwhile.
func TestCommandsWaitForAControlPlaneThatStarts(t *testing.T) {
	share := t.TempDir()
	t.Setenv("XDG_DATA_HOME", share)
	t.Setenv("KUBECONFIG", "")
	home := clientcmd.RecommendedHomeFile
	clientcmd.RecommendedHomeFile = filepath.Join(t.TempDir(), "none")
	t.Cleanup(func() { clientcmd.RecommendedHomeFile = home })
	for dir, selected := range map[string]string{
		filepath.Join(share, "xpkg", "default"): "", filepath.Join(share, "chosen"): filepath.Join(share, "chosen"),
	} {
		t.Setenv(datadir.Variable, selected)
		startPlane(t, dir, "http://plane:1")
		state := filepath.Join(dir, datadir.StateName)
		ready, err := os.ReadFile(state)
		if err := errors.Join(err, os.Remove(state)); err != nil {
			t.Fatal(err)
		}
		interrupted, interrupt := context.WithCancel(t.Context())
		interrupt()
		if _, err := (ClusterFlags{}).Config(interrupted); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: interrupted, the command ends with %v", dir, err)
		}
		written := make(chan error, 1)
		go func() { written <- datadir.WriteFile(state, ready) }()
		if cfg, err := (ClusterFlags{}).Config(t.Context()); err != nil || cfg.Host != "http://plane:1" {
			t.Errorf("%s: got %v, %v", dir, cfg, err)
		}
		if err := <-written; err != nil {
			t.Fatal(err)
		}
	}
}

// A command never works on another cluster than the one that KUBECONFIG names.
//
// hardening: L5
func TestKubeconfigOfAMissingFileIsAnError(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	dir := t.TempDir()
	present, missing, other := filepath.Join(dir, "present"), filepath.Join(dir, "missing"), filepath.Join(dir, "other")
	writeKubeconfig(t, present, "http://127.0.0.1:1")
	list := string(filepath.ListSeparator)
	for variable, want := range map[string]string{
		missing:                  "KUBECONFIG is " + missing + ", which does not exist",
		missing + list + other:   "KUBECONFIG is " + missing + " and " + other + "; none of these files exists",
		missing + list + present: "",
		list + present:           "",
	} {
		t.Setenv("KUBECONFIG", variable)
		_, err := ClusterFlags{}.Config(t.Context())
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", variable, err)
		case want != "" && (!errors.Is(err, ErrKubeconfig) || err.Error() != want ||
			!strings.Contains(errcode.From(err).Do, "unset KUBECONFIG")):
			t.Errorf("%s: got %v, want %s", variable, err, want)
		}
		if _, err := (ClusterFlags{Kubeconfig: present}).Config(t.Context()); err != nil {
			t.Errorf("%s: the flag does not take precedence: %v", variable, err)
		}
	}
}
