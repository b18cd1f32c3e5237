// Package datadir opens the data directory of a local control plane. It refuses a
// directory that another user can change, that xpkg did not create, or that another
// process holds.
package datadir

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/internal/wording"
)

const (
	// Variable is the environment variable that names a data directory.
	Variable = "XPKG_DATA_DIR"

	// LockName is the lock file of the process that holds the directory.
	LockName = "up.lock"
	// ChildLockName is the lock file of the child process of the holder.
	ChildLockName = "controlplane.lock"
	// StateName is the file that the holder writes when the control plane is ready.
	StateName = "state.json"
	// RegistryName is the file that the holder writes when it listens on the port of the registry.
	RegistryName = "registry.json"
	pidName      = "up.pid"
	// flagsName is the file with the flags of the last start.
	flagsName = "flags.json"

	// lockWait is the time that Open waits for the lock, which other processes hold briefly to test
	// it.
	lockWait = 300 * time.Millisecond
	// LockPoll is the pause between two attempts to take a lock.
	LockPoll = 20 * time.Millisecond
)

// Dir is a data directory that this process holds.
type Dir struct {
	// Path is the absolute path.
	Path string
	lock *flock.Flock
	// disown releases the lock that identifies this process as the holder.
	disown func() error
}

// Default returns the default data directory: $XDG_DATA_HOME/xpkg/default, or
// ~/.local/share/xpkg/default if the variable is not set. It returns an empty string if
// the user has no home directory either.
func Default() string {
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

// OfKubeconfig returns the directory of a kubeconfig, which can be a symbolic link. It is a data directory if `xpkg up`
// wrote the kubeconfig.
func OfKubeconfig(file string) string {
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target
	}
	return filepath.Dir(file)
}

// Command adds a data directory to a command of xpkg, unless it is the default one.
func Command(command, path string) string {
	if path == Default() {
		return command
	}
	return command + " --data-dir " + wording.ShellWord(path)
}

// StartCommand returns the command that starts the control plane of a data directory, with flags. Those of its last
// start apply in any case.
func StartCommand(path string, flags ...string) string {
	command := "xpkg up"
	for _, flag := range flags {
		command += " " + wording.ShellWord(flag)
	}
	return Command(command, path)
}

// LastFlags returns the flags of the last start of the control plane of a data directory, which apply to the next
// start, too: other runtimes, permissions or policies would change its packages. There are none if the directory is
// new, or if the file with the flags is damaged.
func LastFlags(path string) []string {
	var last []string
	if content, err := os.ReadFile(filepath.Join(path, flagsName)); err != nil || json.Unmarshal(content, &last) != nil {
		return nil
	}
	return last
}

// SaveFlags writes the flags of a start for [LastFlags].
func (d *Dir) SaveFlags(flags []string) error {
	return WriteJSON(d.File(flagsName), append([]string{}, flags...))
}

// Open creates the directory if it is missing, and takes its lock. It fails as [Check] does, with
// ErrInUse if another process holds the directory, and with ErrUnusable.
func Open(path string, now time.Time) (*Dir, error) {
	path, err := Absolute(path)
	if err != nil {
		return nil, err
	}
	if err := Check(path); err != nil {
		return nil, err
	}
	if err := create(path); err != nil {
		return nil, err
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
		return nil, errors.Join(unusable(err, path, "cannot lock data directory %s", path), lock.Unlock())
	}
	d := &Dir{Path: path, lock: lock, disown: disown}
	if err := d.prepare(now); err != nil {
		return nil, errors.Join(unusable(err, path, "cannot write to data directory %s", path), d.Close())
	}
	return d, nil
}

// create creates the directory if it is missing. It writes into a new directory before Open leaves lock files in it,
// which need no space, and removes one that cannot be used.
func create(path string) error {
	entries, err := os.ReadDir(path)
	missing := errors.Is(err, fs.ErrNotExist)
	if err := fileutil.MkdirAll(path, 0o700); err != nil {
		return unusable(err, path, "cannot create the data directory %s", path)
	}
	if !missing && len(entries) > 0 {
		return nil
	}
	probe := filepath.Join(path, ".up.probe"+strconv.Itoa(os.Getpid()))
	err = os.WriteFile(probe, make([]byte, probeSize), 0o600)
	if removed := os.Remove(probe); err == nil {
		err = removed
	}
	if err == nil {
		return nil
	}
	if missing {
		_ = os.Remove(path) // Another process may use it.
	}
	return unusable(err, path, "cannot write to data directory %s", path)
}

// probeSize is enough for the files that Open writes.
const probeSize = 4 << 10

// unusable returns ErrUnusable with advice that depends on the reason.
func unusable(err error, path, format string, args ...any) error {
	failed := ErrUnusable.New(err, format, args...)
	if advice := fileutil.DirectoryAdvice(err, path, "--data-dir"); advice != "" {
		return failed.WithDo("%s", advice)
	}
	return failed
}

// Absolute returns the absolute path of a data directory.
func Absolute(path string) (string, error) {
	if path == "" {
		return "", ErrUnusable.New(nil, "there is no data directory: neither XDG_DATA_HOME nor HOME is set")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", ErrUnusable.New(err, "cannot find data directory %s", path)
	}
	return path, nil
}

func lockDirectory(path string) (*flock.Flock, error) {
	lock := flock.New(filepath.Join(path, LockName), flock.SetPermissions(0o600))
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	ours, err := lock.TryLockContext(ctx, LockPoll)
	if ours {
		return lock, nil
	}
	if err != nil && ctx.Err() == nil {
		return nil, unusable(err, path, "cannot lock data directory %s", path)
	}
	return nil, ErrInUse.New(nil, "data directory %s is in use by process %s", path, holder(path)).
		WithDo(
			"See it with `%s`, stop it with `%s`, or choose another directory with --data-dir.", Command("xpkg status", path),
			Command("xpkg down", path),
		)
}

// prepare removes the access of other users, and the state of the previous process. It writes the
// process ID, and the layout of a new directory.
func (d *Dir) prepare(now time.Time) error {
	if err := os.Chmod(d.Path, 0o700); err != nil { // The owner must be able to enter the directory.
		return err
	}
	if err := errors.Join(
		RemoveFile(d.File(pidName)), RemoveFile(d.File(RegistryName)), RemoveFile(d.File(StateName)),
	); err != nil {
		return err
	}
	if err := WriteFile(d.File(pidName), []byte(strconv.Itoa(os.Getpid())+"\n")); err != nil {
		return err
	}
	if err := d.writeVersion(now); err != nil {
		return err
	}
	for _, folder := range []string{d.Logs(), d.Cache(), d.Registry()} {
		if err := fileutil.MkdirAll(folder, 0o700); err != nil {
			return err
		}
	}
	return nil
}

// Close releases the directory.
func (d *Dir) Close() error {
	return errors.Join(
		RemoveFile(d.File(StateName)), RemoveFile(d.File(RegistryName)), RemoveFile(d.File(pidName)), d.disown(),
		d.lock.Unlock(),
	)
}

// File returns the path of a file in the directory.
func (d *Dir) File(name string) string { return filepath.Join(d.Path, name) }

// Logs returns the path of the directory of logs.
func (d *Dir) Logs() string { return d.File("logs") }

// Cache returns the path of the package cache.
func (d *Dir) Cache() string { return d.File("cache") }

// Registry returns the path of the directory of the registry's content.
func (d *Dir) Registry() string { return d.File("registry") }

// Held reports whether a process holds the lock with a name. It returns false if the directory or
// the file is missing.
func Held(path, name string) bool {
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

// RecordedPID returns the recorded process ID of the holder, or 0 if there is none. It is only for
// messages: the process may have ended, and another process may have its ID.
func RecordedPID(path string) int {
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

// holder returns the ID of the process that holds a directory, for messages.
func holder(path string) string {
	pid, err := OwnerPID(path)
	if err != nil || pid == 0 {
		pid = RecordedPID(path)
	}
	if pid != 0 {
		return strconv.Itoa(pid)
	}
	return "unknown"
}

// RemoveFile removes a file. It is not an error if the file does not exist.
func RemoveFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
