//go:build unix

package datadir

import (
	"errors"
	"io/fs"
	"os"

	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/internal/wording"
)

// othersWrite are the bits of a mode that allow the group or other users to write.
const othersWrite fs.FileMode = 0o022

// checkPrivate fails with ErrUnsafe if another user can change or replace the data directory, which
// contains keys, and paths of files that this process executes and removes. It accepts a missing
// directory.
func checkPrivate(path string) error {
	if err := checkPath(path); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return ErrUnusable.New(err, "cannot read data directory %s", path)
	}
	if owner := fileutil.OwnerOf(info); owner != os.Geteuid() {
		return ErrUnsafe.New(nil, "data directory %s belongs to user %d, and this is user %d", path, owner, os.Geteuid())
	}
	if info.IsDir() && info.Mode()&othersWrite != 0 {
		return ErrUnsafe.New(
			nil, "other users can write to data directory %s, which has mode %04o", path, fileutil.UnixMode(info),
		).
			WithDo("Check that no other user has changed it, and run `chmod go-w %s`.", wording.ShellWord(path))
	}
	return nil
}

// checkPath fails with ErrUnsafe if another user can replace a directory or a link on the path.
func checkPath(path string) error {
	err := fileutil.CheckAncestors(path)
	var replaceable *fileutil.ReplaceableError
	if errors.As(err, &replaceable) {
		return ErrUnsafe.New(err, "another user can replace data directory %s", path).
			WithDo("%s", replaceable.Do("--data-dir"))
	}
	if err != nil {
		return ErrUnusable.New(err, "cannot read data directory %s", path)
	}
	return nil
}
