//go:build unix

package program_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/apis/crds"
	"github.com/xpkg-dev/xpkg/internal/testing/buffer"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/internal/testing/port"
)

// The manager runs on any cluster as it does in "xpkg up": here on an API server without objects
// of xpkg, except for a CRD that another package manager has left behind.
//
// hardening: H10
func TestManagerOnAnyCluster(t *testing.T) {
	w := newWorkshop(t)
	kubeconfig := cluster.Kubeconfig(t)
	p := plane{workshop: w}
	p.Kubeconfig, p.Registry = kubeconfig, cluster.Registry(t)
	c := newClient(t, kubeconfig)
	const theirs = "providers.pkg.crossplane.io"
	leaveDefinition(t, c, theirs)
	before := versions(t, c)

	// A CRD of another package manager is not changed.
	r := w.run(
		t.Context(), kubeconfig, "manager", "--package-runtime", "None", "--cache-dir", filepath.Join(t.TempDir(), "cache"),
	)
	if problem := checkRefusal(r.stderr, "ForeignControlPlane"); problem != "" || r.code != 9 {
		t.Fatalf("exit code %d, %s", r.code, problem)
	}
	if after := versions(t, c); len(after) != len(before) || after[theirs] != before[theirs] {
		t.Fatalf("the manager refused the cluster and has written to it: %v", after)
	}

	// With --take-over it is replaced, and the kinds of Crossplane are installed.
	cache := filepath.Join(t.TempDir(), "cache")
	m := w.manager(t, kubeconfig, "--take-over", "--cache-dir", cache)
	if log := m.log.String(); !strings.Contains(log, "permissive CRDs") ||
		!strings.Contains(log, "compositions.apiextensions.crossplane.io") {
		t.Errorf("the log does not tell of the permissive definitions:\n%s", log)
	}
	if after := versions(t, c); after[theirs] == before[theirs] ||
		after["compositions.apiextensions.crossplane.io"] == "" {
		t.Errorf("the cluster was not taken over: %v", after)
	}
	// A second manager is refused, with the commands that show the first one.
	r = w.run(
		t.Context(), kubeconfig, "manager", "--package-runtime", "None", "--cache-dir", filepath.Join(t.TempDir(), "cache"),
	)
	if r.code != 9 || !strings.Contains(r.stderr, "error: AnotherManager: the manager ") ||
		!strings.Contains(r.stderr, "`kubectl get lease --namespace crossplane-system xpkg-manager -o yaml`") {
		t.Errorf("exit code %d\n%s", r.code, r.stderr)
	}
	ref := p.publish(t, providerFolder(t, "anywhere", "anywhere.test", 5), "manager/anywhere")
	p.xpkg(t, "install", "provider", ref, "anywhere", "--wait", "2m")
	hello := p.publish(t, configurationFolder(t), "manager/composed")
	p.xpkg(t, "install", "configuration", hello, "composed", "--wait", "2m")
	if out := p.xpkg(t, "list"); !strings.Contains(out, "provider/anywhere") ||
		!strings.Contains(out, "configuration/composed") {
		t.Errorf("xpkg list:\n%s", out)
	}
	m.stop(t)

	// The next start finds all CRDs and logs none of them.
	m = w.manager(t, kubeconfig, "--cache-dir", cache)
	if log := m.log.String(); strings.Contains(log, "permissive CRDs") {
		t.Errorf("the second start tells of permissive definitions again:\n%s", log)
	}
	p.xpkg(t, "uninstall", "configuration", "composed", "--wait", "1m")
	p.xpkg(t, "uninstall", "provider", "anywhere", "--wait", "1m")
	if left := definitions(t, c, "anywhere.test"); len(left) != 0 {
		t.Errorf("%d definitions are left", len(left))
	}
	m.stop(t)
}

// leaveDefinition installs a definition of the package API as another package
// manager does: without the mark of this one.
func leaveDefinition(t *testing.T, c client.Client, name string) {
	t.Helper()
	all, err := crds.Packages()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		if d.Name != name {
			continue
		}
		if err := c.Create(t.Context(), d.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		until(t, name+" is established", func(ctx context.Context) (string, bool) {
			var now apiextensionsv1.CustomResourceDefinition
			err := c.Get(ctx, client.ObjectKey{Name: name}, &now)
			return fmt.Sprint(err), err == nil && isEstablished(now)
		})
	}
}

// configurationFolder writes a configuration with a composition, and returns its folder.
func configurationFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "crossplane.yaml"), `apiVersion: meta.pkg.crossplane.io/v1
kind: Configuration
metadata:
  name: composed
`)
	write(t, filepath.Join(dir, "composition.yaml"), `apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata:
  name: composed.anywhere.test
spec:
  compositeTypeRef: {apiVersion: anywhere.test/v1, kind: Composed}
  mode: Pipeline
  pipeline: [{step: compose, functionRef: {name: any}}]
`)
	return dir
}

// manager is "xpkg manager" as a process.
type manager struct {
	cmd *exec.Cmd
	log *buffer.Buffer
}

// manager starts a manager without package runtimes, and waits until it is ready.
func (w workshop) manager(t *testing.T, kubeconfig string, args ...string) manager {
	t.Helper()
	address := port.Free(t)
	args = append(
		[]string{"manager", "--kubeconfig", kubeconfig, "--health-address", address, "--package-runtime", "None"}, args...,
	)
	m := manager{cmd: exec.Command(w.program(), args...), log: &buffer.Buffer{}}
	m.cmd.Env, m.cmd.Stderr = w.env, m.log
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	note, err := w.note(m.cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if m.cmd.ProcessState == nil {
			_, _ = m.cmd.Process.Kill(), m.cmd.Wait()
		}
		if err := os.Remove(note); err != nil {
			t.Error(err)
		}
	})
	until(t, "the manager is ready", func(ctx context.Context) (string, bool) {
		live, ready := status(ctx, "http://"+address+"/healthz"), status(ctx, "http://"+address+"/readyz")
		return m.log.String(), live == http.StatusOK && ready == http.StatusOK
	})
	return m
}

// stop stops the manager as a cluster does.
func (m manager) stop(t *testing.T) {
	t.Helper()
	if err := m.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := m.cmd.Wait(); err != nil {
		t.Errorf("the manager ended with %v:\n%s", err, m.log.String())
	}
}

// status returns the status code of an answer; 0 when there is none.
func status(ctx context.Context, url string) int {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	return answer.StatusCode
}
