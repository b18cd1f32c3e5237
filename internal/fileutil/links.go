package fileutil

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const maxLinks = 40

// followLinks returns the path that the symbolic links at the end of path lead to. The
// file at the end need not exist.
func followLinks(path string) (string, error) {
	name := path
	for range maxLinks {
		info, err := os.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode()&fs.ModeSymlink == 0 {
			return name, nil
		}
		if err != nil {
			return "", err
		}
		if name, err = nextLink(name); err != nil {
			return "", err
		}
	}
	return "", pathError(path, errors.New("too many levels of symbolic links"))
}

// nextLink returns the path that the symbolic link name contains, relative to the
// directory that the link is really in.
func nextLink(name string) (string, error) {
	to, err := os.Readlink(name)
	if err != nil || filepath.IsAbs(to) {
		return to, err
	}
	dir, err := realDir(name)
	if err != nil {
		return "", err
	}
	// filepath.Join would remove ".." without regard to links.
	return dir + string(filepath.Separator) + to, nil
}

// realDir returns the directory of a file, with all symbolic links followed.
func realDir(name string) (string, error) {
	dir, _ := filepath.Split(name)
	if dir == "" {
		dir = "."
	}
	if trimmed := strings.TrimRight(dir, string(filepath.Separator)); trimmed != "" {
		dir = trimmed
	}
	return filepath.EvalSymlinks(dir)
}
