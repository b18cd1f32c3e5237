package sandbox

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncFiles flushes all writes to the file system of a folder to disk.
func syncFiles(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(d.Fd())), d.Close())
}
