package up

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/xpkg-dev/xpkg/internal/up/datadir"

	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// stopGrace is the time that Stop waits for each of the two processes: for the holder of
// the directory before it is killed, and then for its child.
const stopGrace = 20 * time.Second

// Stop stops the control plane of a data directory, in the foreground or in the background, and
// returns when its processes have exited. It fails with ErrNotRunning if no control plane runs, and
// with ErrNotStopped if a process does not exit.
func Stop(ctx context.Context, dataDir string) error {
	path, err := datadir.Absolute(dataDir)
	if err != nil {
		return err
	}
	if datadir.Held(path, datadir.LockName) {
		err = stopHolder(ctx, path)
	} else if !datadir.Held(path, datadir.ChildLockName) {
		return NotRunning(path)
	}
	if err != nil {
		return err
	}
	return waitFree(ctx, path, datadir.ChildLockName, stopGrace)
}

// NotRunning returns the error of a data directory in which no control plane runs.
func NotRunning(dataDir string) *errcode.Error {
	return ErrNotRunning.New(nil, "no control plane runs in %s", dataDir).
		WithDo("Start one with `%s`, or name its directory with --data-dir.", datadir.StartCommand(dataDir))
}

// stopHolder stops the process that holds the directory. It kills the process after stopGrace.
func stopHolder(ctx context.Context, path string) error {
	process, err := findHolder(path)
	if err != nil {
		return err
	}
	defer process.Release() //nolint:errcheck // It only closes the handle.
	if err := terminate(process); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return ErrNotStopped.New(err, "cannot signal process %d to stop", process.Pid)
	}
	err = waitFree(ctx, path, datadir.LockName, stopGrace)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if err := process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return ErrNotStopped.New(err, "cannot kill process %d", process.Pid)
	}
	return waitFree(ctx, path, datadir.LockName, stopGrace)
}

// findHolder returns the process that holds the directory, as the kernel reports it. It does not
// use the recorded process ID: another process may have that ID, and other users may have changed
// the record. It opens the process before it reads the lock again, so the handle never refers to a
// later process with the same ID.
func findHolder(path string) (*os.Process, error) {
	pid, err := datadir.OwnerPID(path)
	if err != nil {
		return nil, ErrNotStopped.New(err, "cannot determine which process holds %s", path)
	}
	if pid == 0 {
		return nil,
			ErrNotStopped.New(nil, "a process holds %s, but it is not a running control plane of this PID namespace", path).
				WithDo("If it is starting, wait and try again. Otherwise run `fuser %s` to find the process, and stop it where it was started.",
					wording.ShellWord(filepath.Join(path, datadir.LockName)))
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		return nil, ErrNotStopped.New(err, "cannot open process %d", pid)
	}
	if again, err := datadir.OwnerPID(path); err != nil || again != pid {
		return nil, errors.Join(
			ErrNotStopped.New(err, "another process has started to hold %s, or process %d is stopping", path, pid).
				WithDo("Try again."),
			process.Release())
	}
	return process, nil
}

// waitFree waits until no process holds a lock of the directory. It fails with ErrNotStopped after
// the limit.
func waitFree(ctx context.Context, path, name string, limit time.Duration) error {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(statePoll)
	defer tick.Stop()
	for datadir.Held(path, name) {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-deadline.C:
			return ErrNotStopped.New(nil, "the control plane in %s did not stop within %s", path, limit)
		case <-tick.C:
		}
	}
	return nil
}
