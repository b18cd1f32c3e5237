//go:build unix

package oci

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// noFollow makes opening a symbolic link fail.
const noFollow = syscall.O_NOFOLLOW

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
