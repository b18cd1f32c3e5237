package filetree

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Copy copies a tree of folders, files and symbolic links, with their permissions, to a path that
// does not exist. On file systems that support it, the copies share their blocks.
func Copy(from, to string) error {
	// The permissions of folders are set last, because they may forbid writes.
	modes := map[string]fs.FileMode{}
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		switch d.Type() {
		case fs.ModeDir:
			info, err := d.Info()
			if err != nil {
				return err
			}
			modes[target] = info.Mode()
			return os.Mkdir(target, 0o700)
		case fs.ModeSymlink:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(link, target)
		}
		return CopyFile(path, target)
	})
	for path, mode := range modes {
		err = errors.Join(err, os.Chmod(path, mode))
	}
	return err
}

// CopyFile copies a file with its permissions and modification time to a path that does
// not exist.
func CopyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return errors.Join(out.Chmod(info.Mode()), os.Chtimes(to, info.ModTime(), info.ModTime()))
}
