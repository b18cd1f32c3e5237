//go:build unix

package store

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

// tryLock locks an open file, exclusively or shared, and reports success. The lock ends
// when the file is closed or the process exits. On a file system without locks it always
// succeeds: the locks only prevent the removal of open files, and a removal does not harm
// readers.
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

// settle renames a file to its final name and closes it. The rename comes before the
// release of the lock, because an unlocked temporary file is treated as one of a killed
// process.
func settle(f *os.File, path string) error {
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return f.Close()
}

// checkOwner returns an error if a file does not belong to the user of this process.
func checkOwner(info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	if uid := os.Geteuid(); int(stat.Uid) != uid {
		return fmt.Errorf("its owner is user %d, but this process runs as user %d", stat.Uid, uid)
	}
	return nil
}

// syncDir makes a rename durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
