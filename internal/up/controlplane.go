package up

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/xpkg-dev/xpkg/internal/up/child"
	"github.com/xpkg-dev/xpkg/internal/up/datadir"
	"github.com/xpkg-dev/xpkg/internal/up/program"
	"github.com/xpkg-dev/xpkg/internal/version"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// previousWait is the time that a start waits for the child of a killed process. The child
// needs about three seconds, and more on a busy machine.
const previousWait = 20 * time.Second

const controlPlaneLog = "controlplane.log"

// controlPlane is the child process with its log.
type controlPlane struct {
	*child.Process
	log *logFile
}

// FindProgram returns the path of the program of the control plane, which is beside the running program or was built
// for its version.
func FindProgram() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", ErrControlPlaneMissing.New(err, "cannot find the xpkg executable")
	}
	// The running program may have been called through a symbolic link in another folder.
	folders := []string{filepath.Dir(self)}
	if real, err := filepath.EvalSymlinks(self); err == nil {
		folders = append(folders, filepath.Dir(real))
	}
	if built := program.Folder(version.Version); built != "" && version.Released() {
		folders = append(folders, built)
	}
	return child.Find(os.Getenv, folders...)
}

func startControlPlane(
	ctx context.Context, o Options, dir *datadir.Dir, program string, log *logFile,
) (*controlPlane, error) {
	done := o.stage(StageControlPlane)
	starting, cancel := context.WithCancel(ctx)
	defer cancel()
	unblocked := make(chan struct{})
	go func() {
		defer close(unblocked)
		retryUnblock(starting, dir, o.Unblock, log)
	}()
	process, err := startChild(ctx, o, dir, program, log)
	if err != nil {
		cancel()
		<-unblocked
		return nil, withLog(err, log)
	}
	// The health checks, and the first writes of the manager, may be blocked until then.
	select {
	case <-unblocked:
	case <-process.Done(): // The caller reports it.
		cancel()
		<-unblocked
	}
	done()
	return &controlPlane{process, log}, nil
}

func startChild(
	ctx context.Context, o Options, dir *datadir.Dir, program string, log *logFile,
) (*child.Process, error) {
	policies, err := dir.WritePolicies(o.Policies)
	if err != nil {
		return nil, err
	}
	return child.Start(ctx, child.Options{
		Program: program, DataDir: dir.Path, Port: o.Port, CRDOpenAPI: o.CRDOpenAPI, Policies: policies, Log: log.File,
	})
}

// withLog adds the last lines of the log to ErrControlPlaneFailed. It returns other errors
// unchanged.
func withLog(err error, log *logFile) error {
	lines := log.lastLines()
	if !errors.Is(err, ErrControlPlaneFailed) || lines == "" {
		return err
	}
	why := errors.New("the log ends with:\n" + lines)
	f := errcode.From(err)
	if f.Why != nil {
		why = fmt.Errorf("%w; %w", f.Why, why)
	}
	return f.Code.New(why, "%s", f.What)
}

// failure returns the error of a child that exited without a request.
func (c *controlPlane) failure() error {
	err := c.Err()
	if err == nil {
		err = errors.New("it stopped without a request")
	}
	return withLog(ErrControlPlaneFailed.New(err, "the control plane ended by itself"), c.log)
}

// stop stops the child. It returns nil if the child has already exited, because that was reported.
func (c *controlPlane) stop() error {
	select {
	case <-c.Done():
		return nil
	default:
		return c.Stop()
	}
}

// waitForPrevious waits for the child of a process that was killed, which holds the database and
// the port of the API server until it stops.
func waitForPrevious(ctx context.Context, o Options, dir *datadir.Dir) error {
	if !datadir.Held(dir.Path, datadir.ChildLockName) {
		return nil
	}
	done := o.stage(StagePrevious)
	limited, cancel := context.WithTimeout(ctx, previousWait)
	defer cancel()
	lock := flock.New(dir.File(datadir.ChildLockName), flock.SetFlag(os.O_RDWR))
	free, err := lock.TryLockContext(limited, datadir.LockPoll)
	switch {
	case free:
		done()
		return lock.Unlock()
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case limited.Err() != nil:
		return ErrDataDirInUse.New(nil, "the database of %s is in use by a control plane that does not stop", dir.Path).
			WithDo("End the process that holds %s.", dir.File(datadir.ChildLockName))
	default:
		return ErrDataDirUnusable.New(err, "cannot lock the database of %s", dir.Path)
	}
}
