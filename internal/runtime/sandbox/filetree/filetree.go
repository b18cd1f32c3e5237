// Package filetree copies, removes and flushes trees of files.
package filetree

import (
	"errors"
	"io/fs"
	"os"
)

// Mkdir creates a folder with the given mode, regardless of the umask of the process.
func Mkdir(path string, mode fs.FileMode) error {
	if err := os.Mkdir(path, mode); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

// Exists reports whether a path exists. It does not follow a symbolic link.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
