package connection

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/up/datadir"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// A kubeconfig of a control plane that does not run names the command that starts it; that of another cluster does not.
func TestStoppedControlPlaneIsStarted(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "plane")
	dir, err := datadir.Open(folder, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	for folder, want := range map[string]string{folder: "`xpkg up --detach --data-dir " + folder +
		"`", other: "Check that the cluster runs"} {
		file := filepath.Join(folder, "kubeconfig")
		content := "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'http://" + listener.Addr().
			String() +
			"'}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		cluster, err := ClusterFlags{Kubeconfig: file}.Client(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		err = apiserver.Classify(cluster.List(t.Context(), &v1.ProviderList{}), "list providers")
		if do := errcode.From(err).Do; errcode.From(err).Code.Name != apiserver.ErrCluster.Name ||
			!strings.Contains(do, want) {
			t.Errorf("got %v (%s), want %s", err, do, want)
		}
	}
}
