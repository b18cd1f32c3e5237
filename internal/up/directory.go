package up

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

const (
	lockName = "up.lock"
	pidName  = "up.pid"
	// childLockName is the lock that the child process holds.
	childLockName = "controlplane.lock"

	// lockWait is for a program that only looks whether the lock is held, and takes
	// it for an instant to do so.
	lockWait = 300 * time.Millisecond
	// childWait is how long a start waits for the child of a process that was
	// killed. It needs three seconds, and more on a machine that is busy.
	childWait = 20 * time.Second
	// lockPoll is the pause between two attempts at a lock.
	lockPoll = 20 * time.Millisecond
)

// A directory is a data directory that this process holds.
type directory struct {
	path string
	lock *flock.Flock
	// disown releases the lock that identifies this process as the holder.
	disown func() error
}

// DefaultDataDir is the data directory of a user who names none:
// $XDG_DATA_HOME/xpkg/default, or ~/.local/share/xpkg/default without that variable.
// It is empty when the user has no home directory either.
func DefaultDataDir() string {
	// XDG Base Directory specification: a relative path is invalid and ignored.
	base := os.Getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(base) {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		base = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(base, "xpkg", "default")
}

// openDirectory makes the directory where it is missing and takes its lock. It
// leaves a directory alone that is not ours or has another layout.
func openDirectory(path string, now time.Time) (*directory, error) {
	path, err := absolute(path)
	if err != nil {
		return nil, err
	}
	if err := checkDirectory(path); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, ErrDataDirUnusable.New(err, "cannot make data directory %s", path)
	}
	// Another user may have created the directory since the first check.
	if err := checkPrivate(path); err != nil {
		return nil, err
	}
	lock, err := lockDirectory(path)
	if err != nil {
		return nil, err
	}
	disown, err := lockOwner(path)
	if err != nil {
		return nil, errors.Join(ErrDataDirUnusable.New(err, "cannot lock data directory %s", path), lock.Unlock())
	}
	d := &directory{path: path, lock: lock, disown: disown}
	if err := d.prepare(now); err != nil {
		return nil, errors.Join(ErrDataDirUnusable.New(err, "cannot write to data directory %s", path), d.close())
	}
	return d, nil
}

func absolute(path string) (string, error) {
	if path == "" {
		return "", ErrDataDirUnusable.New(nil, "there is no data directory: neither XDG_DATA_HOME nor HOME is set")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", ErrDataDirUnusable.New(err, "cannot find data directory %s", path)
	}
	return path, nil
}

func lockDirectory(path string) (*flock.Flock, error) {
	lock := flock.New(filepath.Join(path, lockName), flock.SetPermissions(0o600))
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	ours, err := lock.TryLockContext(ctx, lockPoll)
	if ours {
		return lock, nil
	}
	if err != nil && ctx.Err() == nil {
		return nil, ErrDataDirUnusable.New(err, "cannot lock data directory %s", path)
	}
	return nil, ErrDataDirInUse.New(nil, "data directory %s is in use by process %s", path, holder(path))
}

// prepare closes the directory to other users, and writes who holds it, and its
// layout when it is new. It removes the state of the last process.
func (d *directory) prepare(now time.Time) error {
	if err := os.Chmod(d.path, 0o700); err != nil { //nolint:gosec // A folder needs the right to enter it.
		return err
	}
	if err := errors.Join(remove(d.file(pidName)), remove(d.file(stateName))); err != nil {
		return err
	}
	if err := replace(d.file(pidName), []byte(strconv.Itoa(os.Getpid())+"\n")); err != nil {
		return err
	}
	if err := d.writeVersion(now); err != nil {
		return err
	}
	for _, folder := range []string{d.logs(), d.cache(), d.registry()} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
	}
	return nil
}

// close gives the directory back.
func (d *directory) close() error {
	return errors.Join(remove(d.file(stateName)), remove(d.file(pidName)), d.disown(), d.lock.Unlock())
}

func (d *directory) file(name string) string { return filepath.Join(d.path, name) }
func (d *directory) logs() string            { return d.file("logs") }
func (d *directory) cache() string           { return d.file("cache") }
func (d *directory) registry() string        { return d.file("registry") }

// held says whether a process holds the lock of that name. A missing directory or
// file is held by nobody.
func held(path, name string) bool {
	file := filepath.Join(path, name)
	if _, err := os.Stat(file); err != nil {
		return false
	}
	lock := flock.New(file, flock.SetFlag(os.O_RDWR))
	ours, err := lock.TryLock()
	if ours {
		err = lock.Unlock()
	}
	return !ours && err == nil
}

// holderPID returns the recorded process id of the holder, and 0 if there is none. It
// is for messages: the process may have ended, and another one may have its id.
func holderPID(path string) int {
	content, err := os.ReadFile(filepath.Join(path, pidName))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil || pid < 1 {
		return 0
	}
	return pid
}

// holder returns the process that holds a directory, for messages.
func holder(path string) string {
	pid, err := ownerPID(path)
	if err != nil || pid == 0 {
		pid = holderPID(path)
	}
	if pid != 0 {
		return strconv.Itoa(pid)
	}
	return "unknown"
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
