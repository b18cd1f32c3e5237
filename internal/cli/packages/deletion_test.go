package packages

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// interrupting is a cluster in which nothing happens, and whose first read interrupts the command.
type interrupting struct {
	unchanging
	interrupt func()
}

// Get implements client.Reader.
func (c interrupting) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	c.interrupt()
	return nil
}

// An uninstall that was interrupted cannot be repeated for a package that is deleted meanwhile: the advice is to check it, and names the
// command for the packages that were not deleted yet.
func TestInterruptedUninstallNamesTheRest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	top, base := &v1.Configuration{ObjectMeta: metav1.ObjectMeta{Name: "top"}}, &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "base"}}
	env := &terminal.Env{Context: ctx, Stderr: &strings.Builder{}}
	err := waitGone(env, connection.ClusterFlags{}, interrupting{interrupt: interrupt}, top, deletionSummary{}, time.Minute)
	if !errors.Is(err, terminal.ErrInterrupted) || !strings.Contains(errcode.From(err).Do, "`xpkg list`") {
		t.Fatalf("got %v (%s)", err, errcode.From(err).Do)
	}
	rest := errcode.From(notUninstalled(err, []*step{{live: base, remove: true}}))
	if rest.Code.Name != terminal.ErrInterrupted.Name || !strings.Contains(rest.Do, "`xpkg uninstall provider/base`") {
		t.Errorf("got %v (%s)", rest, rest.Do)
	}
}
