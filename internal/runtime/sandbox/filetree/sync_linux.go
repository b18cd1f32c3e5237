package filetree

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Sync flushes all writes to the file system of a folder to disk.
func Sync(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(d.Fd())), d.Close())
}
