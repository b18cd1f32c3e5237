package up

import (
	"context"
	"errors"
	"os"
	"time"
)

// stopGrace is how long Stop waits for each of the two processes: for the one that
// it tells to stop before it kills that, and for the child after that.
const stopGrace = 20 * time.Second

// Stop stops the control plane of a data directory, wherever it runs, and returns
// when nothing of it is left. It fails with ErrNotRunning when there is none, and
// with ErrNotStopped when a process does not end.
func Stop(ctx context.Context, dataDir string) error {
	path, err := absolute(dataDir)
	if err != nil {
		return err
	}
	// The lock proves that the process id is not the one of a process long gone,
	// which may be anybody's by now.
	if held(path, lockName) {
		err = stopHolder(ctx, path)
	} else if !held(path, childLockName) {
		return ErrNotRunning.New(nil, "no control plane runs in %s", path)
	}
	if err != nil {
		return err
	}
	return waitFree(ctx, path, childLockName, stopGrace)
}

// stopHolder stops the process that holds the directory.
func stopHolder(ctx context.Context, path string) error {
	pid := holderPID(path)
	if pid == 0 {
		return ErrNotStopped.New(nil, "cannot tell which process uses %s", path).
			WithDo("Wait until it has started, and try again.")
	}
	if err := terminate(pid); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return ErrNotStopped.New(err, "cannot tell process %d to stop", pid)
	}
	err := waitFree(ctx, path, lockName, stopGrace)
	if err == nil || ctx.Err() != nil {
		return err
	}
	process, err := os.FindProcess(pid)
	if err == nil {
		err = process.Kill()
	}
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return ErrNotStopped.New(err, "cannot kill process %d", pid)
	}
	return waitFree(ctx, path, lockName, stopGrace)
}

// waitFree waits until no process holds a lock of the directory.
func waitFree(ctx context.Context, path, name string, limit time.Duration) error {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(statePoll)
	defer tick.Stop()
	for held(path, name) {
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
