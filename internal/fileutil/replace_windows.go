package fileutil

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// noControllingTerminal has no equivalent on Windows.
const noControllingTerminal = 0

// replace writes a file beside path and renames it to path. Access control lists are
// inherited from the directory, so perm and existing have no effect.
func replace(path string, _ fs.FileMode, _ fs.FileInfo, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"*")
	if err != nil {
		return nameTarget(path, err)
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return nameTarget(path, os.Rename(f.Name(), path))
}

// Sync writes a file to the disk. It does nothing for a directory: the file system journals names.
func Sync(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
