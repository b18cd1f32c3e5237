package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
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
		if do := errcode.From(err).Do; !errors.Is(err, ErrPackageNotFound) || do != want+ErrPackageNotFound.Fix {
			t.Errorf("%s: %v, and what to do: %s", name, err, do)
		}
	}
}

func TestWhatMayBeMeantOfAClosure(t *testing.T) {
	f := lockfile.File{Packages: []lockfile.Package{{Repository: "registry.example.com/acme/network"}, {Repository: "registry.example.com/acme/base"}}}
	_, err := findLocked(f, "netwrk")
	if do := errcode.From(err).Do; !errors.Is(err, ErrNotLocked) || do != "Did you mean network? "+ErrNotLocked.Fix {
		t.Errorf("%v, and what to do: %s", err, do)
	}
}

// Somebody without any cluster is not sent after a variable that xpkg does not read.
func TestNoCluster(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	home := clientcmd.RecommendedHomeFile
	clientcmd.RecommendedHomeFile = filepath.Join(t.TempDir(), "none")
	t.Cleanup(func() { clientcmd.RecommendedHomeFile = home })
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	for file, want := range map[string]string{
		"":          "there is no kubeconfig, and no control plane runs on this machine",
		"/dev/null": "the kubeconfig names no cluster",
	} {
		_, err := clusterFlags{Kubeconfig: file}.config()
		if !errors.Is(err, ErrKubeconfig) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v", file, err)
		}
	}
}

// A command never works on another cluster than the one that KUBECONFIG names.
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
		missing:                  "KUBECONFIG names " + missing + ", which does not exist",
		missing + list + other:   "KUBECONFIG names " + missing + " and " + other + ", and none of them exists",
		missing + list + present: "",
		list + present:           "",
	} {
		t.Setenv("KUBECONFIG", variable)
		_, err := clusterFlags{}.config()
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", variable, err)
		case want != "" && (!errors.Is(err, ErrKubeconfig) || err.Error() != want || !strings.Contains(errcode.From(err).Do, "unset KUBECONFIG")):
			t.Errorf("%s: got %v, want %s", variable, err, want)
		}
		if _, err := (clusterFlags{Kubeconfig: present}).config(); err != nil {
			t.Errorf("%s: the flag does not take precedence: %v", variable, err)
		}
	}
}

// unchanging is a cluster in which nothing happens.
type unchanging struct{ client.Client }

// Get implements client.Reader.
func (unchanging) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return nil
}

// Ctrl-C during --wait is an interruption, and not a package that is not healthy in time.
func TestCtrlCEndsAWaitAsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := waitHealthy(ctx, unchanging{}, v1.NewPackage("Provider"), newProgress(io.Discard))
	if !errors.Is(err, context.Canceled) || errors.Is(err, ErrWait) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	expired, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	if err := waitHealthy(expired, unchanging{}, v1.NewPackage("Provider"), newProgress(io.Discard)); !errors.Is(err, ErrWait) {
		t.Errorf("got %v, want %s", err, ErrWait.Name)
	}
}
