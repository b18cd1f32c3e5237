//go:build unix

package fileutil

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/renameio/v2"
)

// noControllingTerminal keeps a terminal that is opened from becoming the controlling
// terminal.
const noControllingTerminal = syscall.O_NOCTTY

// replace writes a file beside path and renames it to path. The new file keeps the
// owner of existing and, within perm, its mode.
func replace(path string, perm fs.FileMode, existing fs.FileInfo, write func(io.Writer) error) (err error) {
	options := []renameio.Option{renameio.WithTempDir(filepath.Dir(path)), renameio.WithPermissions(perm)}
	if existing != nil {
		options = append(options, renameio.WithStaticPermissions(existing.Mode().Perm()&perm))
	}
	f, err := renameio.NewPendingFile(path, options...)
	if err != nil {
		return nameTarget(path, err)
	}
	defer func() { err = errors.Join(err, f.Cleanup()) }()
	if existing != nil {
		keepOwner(f.File, existing)
	}
	if err := write(f); err != nil {
		return err
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return nameTarget(path, err)
	}
	// The new name is not on the disk before its directory is. A directory without read permission cannot be synced.
	if err := Sync(filepath.Dir(path)); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

// Sync writes a file, or the names in a directory, to the disk. It does nothing if the file system does not support it.
func Sync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	if err = f.Sync(); errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil
	}
	return errors.Join(err, f.Close())
}

// keepOwner sets the owner of f to the owner of existing where the system permits it.
func keepOwner(f *os.File, existing fs.FileInfo) {
	was, ok := existing.Sys().(*syscall.Stat_t)
	info, err := f.Stat()
	if !ok || err != nil {
		return
	}
	is, ok := info.Sys().(*syscall.Stat_t)
	if ok && (is.Uid != was.Uid || is.Gid != was.Gid) {
		_ = f.Chown(int(was.Uid), int(was.Gid))
	}
}
