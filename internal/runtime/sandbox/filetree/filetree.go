// Package filetree copies, removes and flushes trees of files.
package filetree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Remove removes a tree, including folders without permissions, which an overlay leaves
// behind. It is not an error if the tree does not exist.
func Remove(dir string) error {
	if err := os.RemoveAll(dir); err == nil {
		return nil
	}
	// The removal below reports every entry that cannot be read.
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// Mkdir creates a folder with exactly this mode, regardless of the umask of the process.
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
