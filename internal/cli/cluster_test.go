package cli

import (
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/failure"
	"github.com/xpkg-dev/xpkg/internal/lockfile"
)

// Who names a package that is not there is told which one may have been meant: the
// name in a cluster is not always that of the repository.
func TestWhatMayHaveBeenMeant(t *testing.T) {
	all := &installed{}
	for _, name := range []string{"acme-network", "acme-networks", "other"} {
		all.packages = append(all.packages, &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	all.packages = append(all.packages, &v1.Function{ObjectMeta: metav1.ObjectMeta{Name: "acme-greet"}})
	for name, want := range map[string]string{
		"network":              "Did you mean provider/acme-network or provider/acme-networks? ",
		"acme-netwrk":          "Did you mean provider/acme-network or provider/acme-networks? ",
		"function/othr":        "Did you mean provider/other? ",
		"provider/acme-greet":  "Did you mean function/acme-greet? ",
		"something-quite-else": "",
	} {
		_, err := all.find(name)
		if do := failure.From(err).Do; !ErrPackageNotFound.Is(err) || do != want+ErrPackageNotFound.Fix {
			t.Errorf("%s: %v, and what to do: %s", name, err, do)
		}
	}
}

func TestWhatMayBeMeantOfAClosure(t *testing.T) {
	f := lockfile.File{Packages: []lockfile.Package{{Package: "registry.example.com/acme/network"}, {Package: "registry.example.com/acme/base"}}}
	_, err := findLocked(f, "netwrk")
	if do := failure.From(err).Do; !ErrNotLocked.Is(err) || do != "Did you mean network? "+ErrNotLocked.Fix {
		t.Errorf("%v, and what to do: %s", err, do)
	}
}

// Somebody without any cluster is not sent after a variable that xpkg does not read.
func TestNoCluster(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	for file, want := range map[string]string{
		"":          "there is no kubeconfig, and no control plane runs on this machine",
		"/dev/null": "the kubeconfig names no cluster",
	} {
		_, err := clusterFlags{Kubeconfig: file}.config()
		if !ErrKubeconfig.Is(err) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v", file, err)
		}
	}
}
