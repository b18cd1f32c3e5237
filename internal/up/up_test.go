//go:build unix

package up_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/internal/up"
)

func TestRestartFindsEverything(t *testing.T) {
	needControlPlane(t)
	dir := filepath.Join(t.TempDir(), "data")
	var stages []up.Stage
	var mu sync.Mutex
	progress := func(e up.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Done {
			stages = append(stages, e.Stage)
			t.Logf("%s after %s", e.Stage, e.Took)
		}
	}
	first := start(t, up.Options{Dir: dir, Version: "v0", Progress: progress})
	digest := put(t, first.State)
	want(t, first.State, digest)
	wantNothing(t, first.State)
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	wantNothingLeft(t, dir, first.State)

	second := start(t, up.Options{Dir: dir, Version: "v0", Progress: progress})
	if first.Server != second.Server || first.Registry != second.Registry {
		t.Errorf("addresses changed from %s, %s to %s, %s", first.Server, first.Registry, second.Server, second.Registry)
	}
	want(t, second.State, digest)
	wantDeletable(t, second.State, digest)
	if err := second.stop(); err != nil {
		t.Fatal(err)
	}
	wantNothingLeft(t, dir, second.State)
	once := []up.Stage{up.StageControlPlane, up.StageRegistry, up.StageManager, up.StageReady, up.StageStopping}
	if diff := cmp.Diff(slices.Concat(once, once), stages); diff != "" {
		t.Errorf("stages: %s", diff)
	}
}

// wantNothingLeft proves that a clean stop leaves no process, socket or state.
func wantNothingLeft(t *testing.T, dir string, s up.State) {
	t.Helper()
	if alive(s.ControlPlanePID) {
		t.Errorf("process %d still runs", s.ControlPlanePID)
	}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.Type()&fs.ModeSocket != 0 || entry.Name() == "state.json" || entry.Name() == "registry.json" ||
			entry.Name() == "up.pid" {
			t.Errorf("%s is left behind", path)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestDirectoryInUse(t *testing.T) {
	needControlPlane(t)
	dir := t.TempDir()
	start(t, up.Options{Dir: dir})
	err := up.Run(t.Context(), up.Options{Dir: dir})
	if !errors.Is(err, up.ErrDataDirInUse) {
		t.Fatalf("got %v, want DataDirInUse", err)
	}
	if !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Errorf("%q does not name the process", err)
	}
	if _, err := up.Detach(t.Context(), dir, noTests); !errors.Is(err, up.ErrDataDirInUse) {
		t.Errorf("detached: got %v, want DataDirInUse", err)
	}
}

func TestPortOfControlPlaneInUseByAnother(t *testing.T) {
	needControlPlane(t)
	first := start(t, up.Options{Dir: t.TempDir()})
	port, err := strconv.Atoi(first.Server[strings.LastIndex(first.Server, ":")+1:])
	if err != nil {
		t.Fatal(err)
	}
	if err := up.Run(t.Context(), up.Options{Dir: t.TempDir(), Port: port}); !errors.Is(err, up.ErrPortInUse) {
		t.Errorf("got %v, want PortInUse", err)
	}
}

func TestKilledParent(t *testing.T) {
	needControlPlane(t)
	dir := t.TempDir()
	process, first := startProcess(t, dir)
	digest := put(t, first)
	if err := process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = process.Wait()
	// At once, while the child of the killed process still holds the database.
	waited := make(chan struct{}, 2)
	second := start(t, up.Options{Dir: dir, Progress: func(e up.Event) {
		if e.Stage == up.StagePrevious {
			waited <- struct{}{}
		}
	}})
	if len(waited) != 2 {
		t.Error("the start did not wait for the child of the killed process")
	}
	if second.Server != first.Server || second.Registry != first.Registry {
		t.Errorf("addresses changed from %s, %s to %s, %s", first.Server, first.Registry, second.Server, second.Registry)
	}
	want(t, second.State, digest)
	// The orphan has released the data directory; the system may need a moment to remove it.
	wait.Until(
		t, limit, "the first control plane has ended",
		func() (string, bool) { return "it runs", !alive(first.ControlPlanePID) },
	)
}

func TestControlPlaneDies(t *testing.T) {
	needControlPlane(t)
	ended := make(chan error, 1)
	pid := make(chan int, 1)
	go func() {
		ended <- up.Run(limited(t), up.Options{Dir: t.TempDir(), Progress: func(e up.Event) {
			if e.State != nil {
				pid <- e.State.ControlPlanePID
			}
		}})
	}()
	select {
	case p := <-pid:
		if err := syscall.Kill(p, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	case err := <-ended:
		t.Fatal(err)
	}
	err := <-ended
	if !errors.Is(err, up.ErrControlPlaneFailed) {
		t.Fatalf("got %v, want ControlPlaneFailed", err)
	}
	for _, word := range []string{"killed", "the log ends with:\n"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not mention %q", err, word)
		}
	}
}

func TestManagerIsStartedAgain(t *testing.T) {
	needControlPlane(t)
	broken := errors.New("broken")
	var reported []error
	var mu sync.Mutex
	runs := 0
	start(t, up.Options{
		Dir: t.TempDir(),
		Manager: func(ctx context.Context, env up.Env) error {
			if runs++; runs == 1 {
				return broken
			}
			env.Ready()
			env.Ready()
			<-ctx.Done()
			return ctx.Err()
		},
		Progress: func(e up.Event) {
			mu.Lock()
			defer mu.Unlock()
			if e.Err != nil {
				reported = append(reported, e.Err)
			}
		},
	})
	mu.Lock()
	defer mu.Unlock()
	if len(reported) != 1 || !errors.Is(reported[0], broken) {
		t.Errorf("reported %v, want one end of the manager", reported)
	}
}

func TestStopBeforeReady(t *testing.T) {
	needControlPlane(t)
	dir := t.TempDir()
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(limited(t))
	err := up.Run(ctx, up.Options{Dir: dir, Progress: func(e up.Event) {
		if e.Stage == up.StageControlPlane {
			cancel(reason)
		}
	}})
	if !errors.Is(err, reason) {
		t.Errorf("got %v, want the cause of the context", err)
	}
	if r, err := up.Status(dir); err != nil || r.Running {
		t.Errorf("after the stop: %+v, %v", r, err)
	}
}
