package process

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncFiles makes everything that was written to the file system of a folder last
// through a loss of power.
func syncFiles(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(d.Fd())), d.Close())
}
