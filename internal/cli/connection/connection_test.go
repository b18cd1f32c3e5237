package connection

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

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
		"":          "there is no kubeconfig, and no control plane runs on this machine",
		"/dev/null": "the kubeconfig contains no cluster",
	} {
		_, err := ClusterFlags{Kubeconfig: file}.Config(t.Context())
		if !errors.Is(err, ErrKubeconfig) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v", file, err)
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
	config := "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c}}]\n" +
		"clusters: [{name: c, cluster: {server: http://127.0.0.1:1}}]\n"
	if err := os.WriteFile(present, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
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
		case want != "" && (!errors.Is(err, ErrKubeconfig) || err.Error() != want || !strings.Contains(errcode.From(err).Do, "unset KUBECONFIG")):
			t.Errorf("%s: got %v, want %s", variable, err, want)
		}
		if _, err := (ClusterFlags{Kubeconfig: present}).Config(t.Context()); err != nil {
			t.Errorf("%s: the flag does not take precedence: %v", variable, err)
		}
	}
}
