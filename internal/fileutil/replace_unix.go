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
	return nameTarget(path, f.CloseAtomicallyReplace())
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
