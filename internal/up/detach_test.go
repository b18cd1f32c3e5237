//go:build unix

package up_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/up"
)

func TestDetachAndStop(t *testing.T) {
	needControlPlane(t)
	dir := t.TempDir()
	state, err := up.Detach(limited(t), dir, arguments(dir, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = up.Stop(context.Background(), dir) })
	report, err := up.Examine(limited(t), dir)
	if err != nil {
		t.Fatal(err)
	}
	if !report.Running || !report.Ready || report.PID != state.PID || report.State != state {
		t.Errorf("the report does not say what Detach said: %+v and %+v", report, state)
	}
	if len(report.Checks) != 3 || report.Created.IsZero() || report.Sizes["etcd"] == 0 {
		t.Errorf("the report is not complete: %+v", report)
	}
	for _, check := range report.Checks {
		if !check.Healthy {
			t.Errorf("%s at %s: %s", check.Name, check.Address, check.Error)
		}
	}
	if err := up.Stop(limited(t), dir); err != nil {
		t.Fatal(err)
	}
	wantNothingLeft(t, dir, state)
	if err := up.Stop(limited(t), dir); !errors.Is(err, up.ErrNotRunning) {
		t.Errorf("second stop: got %v, want ControlPlaneNotRunning", err)
	}
}

func TestDetachPassesTheFailureOn(t *testing.T) {
	needControlPlane(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	_, err = up.Detach(limited(t), dir, arguments(dir, 0, taken.Addr().(*net.TCPAddr).Port))
	if !errors.Is(err, up.ErrPortInUse) {
		t.Fatalf("got %v, want PortInUse", err)
	}
	wantNotRunning(t, dir)
}

func TestDetachShowsOutputOfProcessThatNeverRan(t *testing.T) {
	dir := t.TempDir()
	// An unknown flag ends a test binary before it runs anything.
	_, err := up.Detach(limited(t), dir, []string{"-no-such-flag"})
	if !errors.Is(err, up.ErrNotReady) {
		t.Fatalf("got %v, want ControlPlaneNotReady", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "logs", "up.log")); err != nil {
		t.Error(err)
	}
	wantNotRunning(t, dir)
}

func TestDetachInterrupted(t *testing.T) {
	needControlPlane(t)
	dir := t.TempDir()
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(limited(t))
	cancel(reason)
	if _, err := up.Detach(ctx, dir, arguments(dir, 0, 0)); !errors.Is(err, reason) {
		t.Errorf("got %v, want the cause of the context", err)
	}
	wantNotRunning(t, dir)
}

func wantNotRunning(t *testing.T, dir string) {
	t.Helper()
	if r, err := up.Status(dir); err != nil || r.Running {
		t.Errorf("still running: %+v, %v", r, err)
	}
}
