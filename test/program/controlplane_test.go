//go:build unix

package program_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/up"
)

// limit is for a machine that is busy with other tests.
const limit = 2 * time.Minute

// plane is a control plane with the program that made it.
type plane struct {
	workshop
	up.State
}

// shared returns the control plane of all tests that neither stop nor kill it.
func shared(t testing.TB) plane {
	t.Helper()
	w := newWorkshop(t)
	startShared.Do(func() {
		var dir string
		if dir, sharedErr = w.data("shared"); sharedErr == nil {
			sharedState, sharedErr = w.detach(dir)
		}
	})
	if sharedErr != nil {
		t.Fatal(sharedErr)
	}
	return plane{w, sharedState}
}

var (
	startShared sync.Once
	sharedState up.State
	sharedErr   error
)

// data makes a data directory. The reaper finds it by its name.
func (w workshop) data(name string) (string, error) { return os.MkdirTemp(w.dir, planePrefix+name+"-") }

func (w workshop) newData(t testing.TB, name string) string {
	t.Helper()
	dir, err := w.data(name)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// upArgs returns the arguments to start a control plane on free ports, or on the ports of its last
// start.
func upArgs(dir string) []string {
	return []string{"up", "--data-dir", dir, "--port", "0", "--registry-port", "0", "--package-runtime", "None"}
}

// detach starts a control plane in the background.
func (w workshop) detach(dir string) (up.State, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	result := w.run(ctx, "", append(upArgs(dir), "--detach")...)
	if result.err != nil {
		return up.State{}, fmt.Errorf("xpkg up: %w\n%s", result.err, result.stderr)
	}
	report, err := up.Status(dir)
	if err == nil && !report.Ready {
		err = errors.New("xpkg up --detach ended before the control plane was ready")
	}
	return report.State, err
}

// withRuntimes starts a control plane with process runtimes and more flags, which ends with the test.
func (w workshop) withRuntimes(t testing.TB, name string, flags ...string) plane {
	t.Helper()
	dir := w.newData(t, name)
	none := upArgs(dir)
	if r := w.run(t.Context(), "", append(append(none[:len(none)-2], "--detach"), flags...)...); r.err != nil {
		t.Fatalf("xpkg up: %v\n%s", r.err, r.stderr)
	}
	t.Cleanup(func() { w.run(context.Background(), "", "down", "--data-dir", dir) })
	report, err := up.Status(dir)
	if err != nil {
		t.Fatal(err)
	}
	return plane{w, report.State}
}

// result is the result of a command.
type result struct {
	stdout, stderr string
	code           int
	err            error
}

// run runs the program. The kubeconfig may be empty.
func (w workshop) run(ctx context.Context, kubeconfig string, args ...string) result {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, w.program(), args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = w.env, &stdout, &stderr
	if kubeconfig != "" {
		cmd.Env = append(cmd.Env, "KUBECONFIG="+kubeconfig)
	}
	err := cmd.Run()
	return result{stdout: stdout.String(), stderr: stderr.String(), code: cmd.ProcessState.ExitCode(), err: err}
}

// xpkg runs a command on the cluster of the control plane, which must succeed, and returns its
// output.
func (p plane) xpkg(t testing.TB, args ...string) string {
	t.Helper()
	r := p.run(t.Context(), p.Kubeconfig, args...)
	if r.err != nil {
		t.Fatalf("xpkg %q: %v\n%s%s", args, r.err, r.stdout, r.stderr)
	}
	return r.stdout
}

// publish builds a package and pushes it to the registry of the control plane. It returns the
// reference with the tag.
func (p plane) publish(t testing.TB, folder, repository string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "package.xpkg")
	p.xpkg(t, "build", "-f", folder, "-o", file)
	ref := p.Registry + "/" + repository + ":v1.0.0"
	p.xpkg(t, "push", "-f", file, ref)
	return ref
}
