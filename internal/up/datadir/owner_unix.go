//go:build unix

package datadir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// ownerName is the file on which the holder of a directory keeps a record lock. The kernel reports
// the process of a record lock, so other processes do not need to trust a recorded process ID. The
// holder never opens the file twice: closing any descriptor of a file releases the record locks of
// the process.
const ownerName = "up.owner"

// owned are the directories that this process holds.
var owned sync.Map

// lockOwner takes the record lock that identifies this process as the holder of a directory. It
// returns the function that releases the lock.
func lockOwner(path string) (release func() error, err error) {
	f, err := os.OpenFile(filepath.Join(path, ownerName), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &lock); err != nil {
		return nil, errors.Join(os.NewSyscallError("fcntl", err), f.Close())
	}
	owned.Store(path, true)
	return func() error {
		owned.Delete(path)
		return f.Close()
	}, nil
}

// OwnerPID returns the ID of the process that holds a directory, as the kernel reports it. It
// returns 0 if there is none, or if the process is in another PID namespace.
func OwnerPID(path string) (int, error) {
	if _, ok := owned.Load(path); ok {
		return os.Getpid(), nil
	}
	f, err := os.OpenFile(filepath.Join(path, ownerName), os.O_RDWR|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	err = errors.Join(os.NewSyscallError("fcntl", unix.FcntlFlock(f.Fd(), unix.F_GETLK, &lock)), f.Close())
	if err != nil || lock.Type == unix.F_UNLCK {
		return 0, err
	}
	return max(int(lock.Pid), 0), nil
}
