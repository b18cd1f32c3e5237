package fileutil

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// DirectoryAdvice returns the remedy for a directory that cannot be created or written because of a
// file in its path, a missing permission or missing space. It returns an empty string for any other
// error. The option, such as "--cache-dir", selects another directory; without one, the directory is
// an argument.
func DirectoryAdvice(err error, dir, option string) string {
	another := "name another directory"
	if option != "" {
		another += " with " + option
	}
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Sprintf("%s is a file and not a directory: move it, or %s.", fileAbove(dir), another)
	case errors.Is(err, syscall.EROFS):
		return fmt.Sprintf("%s is on a read-only file system: %s.", dir, another)
	case hasNoSpace(err):
		return fmt.Sprintf("Free space on the device of %s, or %s.", dir, another)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("This user may not write to %s: correct its owner or mode, or %s.", dir, another)
	}
	return ""
}

// IsFull reports whether a file or folder was not written because its device or the quota of the user has no space.
// Other limits of the system have the same error without a path.
func IsFull(err error) bool {
	var file *fs.PathError
	var link *os.LinkError
	return (errors.As(err, &file) || errors.As(err, &link)) && hasNoSpace(err)
}

func hasNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// fileAbove returns the part of a path that exists and is not a directory, or the path if there is
// none.
func fileAbove(path string) string {
	for at := filepath.Clean(path); ; at = filepath.Dir(at) {
		if info, err := os.Stat(at); err == nil && !info.IsDir() {
			return at
		}
		if at == filepath.Dir(at) {
			return path
		}
	}
}

// WithoutPath returns the cause of an error of a file, for a message that names the file itself.
func WithoutPath(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
