//go:build unix

package program_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/internal/up"
)

// many is how many definitions the provider has that is killed while it is
// installed.
const many = 60

// An install that is cut off by kill -9 at any point completes by itself when the
// control plane starts again.
func TestKilledDuringInstall(t *testing.T) {
	lane.Full(t, "test/faults.TestFaultAtEveryCall", "test/program.TestRestart")
	w := newWorkshop(t)
	tests := []struct {
		name string
		// after is how many definitions exist when the processes are killed.
		after int
		// child reports whether etcd and the API server are killed at the same time.
		child bool
	}{
		{"before-the-first", 0, false},
		{"after-the-first", 1, false},
		{"halfway", many / 2, false},
		{"halfway-with-its-child", many / 2, true},
	}
	dir := w.newData(t, "killed")
	running := w.foreground(t, dir)
	t.Cleanup(func() { running.stop(t) })
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			group := tc.name + ".test"
			ref := running.plane().publish(t, providerFolder(t, tc.name, group, many), "killed/"+tc.name)
			c := newClient(t, running.Kubeconfig)
			seen := watchDefinitions(t, c, group)
			running.plane().xpkg(t, "install", "provider", ref, tc.name)
			for range tc.after {
				if _, ok := <-seen; !ok {
					t.Fatal("the watch ended before the install was half done")
				}
			}
			running.kill(t, tc.child)
			running = w.foreground(t, dir)
			left := len(definitions(t, newClient(t, running.Kubeconfig), group))
			wantWhole(t, newClient(t, running.Kubeconfig), tc.name, group)
			t.Logf("killed after %d definitions were seen; %d were there soon after the next start", tc.after, left)
		})
	}
}

// wantWhole proves that a provider is installed as if nothing had happened.
func wantWhole(t *testing.T, c client.Client, name, group string) {
	t.Helper()
	p := untilHealthy(t, c, name)
	var revisions v1.ProviderRevisionList
	if err := c.List(t.Context(), &revisions, client.MatchingLabels{v1.LabelPackage: name}); err != nil {
		t.Fatal(err)
	}
	if len(revisions.Items) != 1 || revisions.Items[0].Name != p.Status.CurrentRevision {
		t.Fatalf("%d revisions, want the one that is current, %s", len(revisions.Items), p.Status.CurrentRevision)
	}
	var listed []string
	for _, o := range revisions.Items[0].Status.ObjectRefs {
		listed = append(listed, o.Name)
	}
	slices.Sort(listed)
	if len(listed) != many || len(slices.Compact(listed)) != many {
		t.Errorf("the revision lists %d objects, want %d different ones", len(listed), many)
	}
	all := definitions(t, c, group)
	if len(all) != many {
		t.Errorf("%d definitions, want %d", len(all), many)
	}
	want := "Provider/" + name + "*"
	for _, d := range all {
		if !isEstablished(d) {
			t.Errorf("%s is not established", d.Name)
		}
		if got := owners(d); got != want {
			t.Errorf("%s belongs to %s, want %s", d.Name, got, want)
		}
	}
}

// watchDefinitions sends a value for each CRD of a group that is created.
func watchDefinitions(t *testing.T, c client.WithWatch, group string) <-chan string {
	t.Helper()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
	watcher, err := c.Watch(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watcher.Stop)
	seen, known := make(chan string, many), map[string]bool{}
	go func() {
		defer close(seen)
		for event := range watcher.ResultChan() {
			d, ok := event.Object.(*metav1.PartialObjectMetadata)
			if ok && strings.HasSuffix(d.Name, "."+group) && !known[d.Name] {
				known[d.Name] = true
				seen <- d.Name
			}
		}
	}()
	return seen
}

// foreground is "xpkg up" as a child of the test, so that the test may kill it.
type foreground struct {
	workshop
	up.State
	cmd *exec.Cmd
}

func (f *foreground) plane() plane { return plane{f.workshop, f.State} }

// foreground starts a control plane in a data directory, which may have been used
// before.
func (w workshop) foreground(t *testing.T, dir string) *foreground {
	t.Helper()
	return w.foregroundWith(t, dir)
}

// foregroundWith starts a control plane that inherits open files.
func (w workshop) foregroundWith(t *testing.T, dir string, files ...*os.File) *foreground {
	t.Helper()
	f := &foreground{workshop: w, cmd: exec.Command(w.program(), upArgs(dir)...)}
	output, err := os.CreateTemp(w.dir, "up-*.log")
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	f.cmd.Env, f.cmd.Stdout, f.cmd.Stderr, f.cmd.ExtraFiles = w.env, output, output, files
	if err := f.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "xpkg up is ready", func(context.Context) (string, bool) {
		report, err := up.Status(dir)
		if err != nil {
			return err.Error(), false
		}
		f.State = report.State
		said, err := os.ReadFile(output.Name())
		return fmt.Sprintf("%s %v", said, err), report.Ready && report.PID == f.cmd.Process.Pid
	})
	return f
}

// stop stops the control plane as Ctrl-C does.
func (f *foreground) stop(t *testing.T) {
	t.Helper()
	if err := errors.Join(f.cmd.Process.Signal(syscall.SIGINT), f.cmd.Wait()); err != nil {
		t.Error(err)
	}
}

// kill kills the process of xpkg with SIGKILL, and if child is set the process of etcd and the API
// server, too.
func (f *foreground) kill(t *testing.T, child bool) {
	t.Helper()
	err := f.cmd.Process.Kill()
	if child {
		err = errors.Join(err, syscall.Kill(f.ControlPlanePID, syscall.SIGKILL))
	}
	if err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := f.cmd.Wait(); !errors.As(err, &exit) {
		t.Fatalf("the killed process ended with %v", err)
	}
}
