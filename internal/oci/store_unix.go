//go:build unix

package oci

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

const (
	// noFollow makes opening a symbolic link fail.
	noFollow = syscall.O_NOFOLLOW
	// noWait makes opening a named pipe return at once.
	noWait = syscall.O_NONBLOCK
)

// tryLock takes a lock on an open file, alone or together with others, and reports
// whether nobody stands against it. The lock ends when the file is closed, or the
// process with it. On a file system without locks everybody gets them: they keep
// what is open from being removed, and removing it does no harm to its readers.
func tryLock(f *os.File, alone bool) bool {
	how := syscall.LOCK_SH
	if alone {
		how = syscall.LOCK_EX
	}
	for {
		err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			return !errors.Is(err, syscall.EWOULDBLOCK)
		}
	}
}

// settle closes a file and gives it its name. It has that before it loses its lock:
// until then it could be taken for one that a killed process left behind.
func settle(f *os.File, path string) error {
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return f.Close()
}

// checkOwner fails when a file does not belong to the user of this process.
func checkOwner(info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	if uid := os.Geteuid(); int(stat.Uid) != uid {
		return fmt.Errorf("its owner is user %d and this process runs as user %d", stat.Uid, uid)
	}
	return nil
}

// syncDir makes a rename last through a loss of power.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
