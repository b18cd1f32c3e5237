//go:build unix

package datadir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/xpkg-dev/xpkg/internal/wording"
)

const (
	// othersWrite are the bits of a mode that let the group or all users write.
	othersWrite fs.FileMode = 0o022
	// worldWrites is the bit of a mode that lets all users write.
	worldWrites fs.FileMode = 0o002
	// maxLinks bounds how many symbolic links a path may lead through.
	maxLinks = 40
)

// checkPrivate refuses a data directory that another user can change or replace: the
// directory holds keys, and the names of files that this process executes and removes.
// The directory may be missing.
func checkPrivate(path string) error {
	if err := checkPath(path, 0); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return ErrUnusable.New(err, "cannot read data directory %s", path)
	}
	if owner := ownerOf(info); owner != os.Geteuid() {
		return ErrUnsafe.New(nil, "data directory %s belongs to user %d, and this is user %d", path, owner, os.Geteuid())
	}
	if info.IsDir() && info.Mode()&othersWrite != 0 {
		return ErrUnsafe.New(nil, "other users can write to data directory %s, which has mode %04o", path, unixMode(info)).
			WithDo("Check that no other user has changed it, and run `chmod go-w %s`.", wording.ShellWord(path))
	}
	return nil
}

// checkPath refuses a path on which another user can replace a directory or a link.
func checkPath(path string, links int) error {
	if links > maxLinks {
		return ErrUnusable.New(syscall.ELOOP, "cannot read data directory %s", path)
	}
	at := "/"
	for _, name := range strings.Split(strings.Trim(path, "/"), "/") {
		parent, err := os.Stat(at)
		if err != nil {
			return missingIsFine(err, path)
		}
		at = filepath.Join(at, name)
		info, err := os.Lstat(at)
		if err := checkParent(filepath.Dir(at), parent); err != nil {
			return err
		}
		if err != nil {
			return missingIsFine(err, path)
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		if owner := ownerOf(info); !isTrusted(owner) {
			return ErrUnsafe.New(nil, "the symbolic link %s on the way to the data directory belongs to user %d, who can replace it", at, owner).
				WithDo("Choose a path that does not contain %s with --data-dir.", at)
		}
		target, err := os.Readlink(at)
		if err != nil {
			return ErrUnusable.New(err, "cannot read data directory %s", path)
		}
		if !filepath.IsAbs(target) {
			dir, err := filepath.EvalSymlinks(filepath.Dir(at))
			if err != nil {
				return ErrUnusable.New(err, "cannot read data directory %s", path)
			}
			target = filepath.Join(dir, target)
		}
		if err := checkPath(filepath.Clean(target), links+1); err != nil {
			return err
		}
	}
	return nil
}

// checkParent refuses a directory in which another user can replace entries of this
// user. The sticky bit prevents that.
func checkParent(path string, info fs.FileInfo) error {
	if owner := ownerOf(info); !isTrusted(owner) {
		return ErrUnsafe.New(nil, "the directory %s on the way to the data directory belongs to user %d, who can replace the data directory", path, owner).
			WithDo("Choose a directory outside of %s with --data-dir.", path)
	}
	if info.Mode()&worldWrites != 0 && info.Mode()&fs.ModeSticky == 0 {
		return ErrUnsafe.New(nil, "all users can replace the data directory: %s has mode %04o, without the sticky bit", path, unixMode(info)).
			WithDo("Run `chmod o-w %s`, or choose another directory with --data-dir.", wording.ShellWord(path))
	}
	return nil
}

// missingIsFine returns nil if err reports that a file does not exist.
func missingIsFine(err error, path string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return ErrUnusable.New(err, "cannot read data directory %s", path)
}

// isTrusted reports whether a user may own a directory on the way to the data
// directory.
func isTrusted(uid int) bool { return uid == 0 || uid == os.Geteuid() || isUnmapped(uid) }

// ownerOf returns the user that owns a file.
func ownerOf(info fs.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid)
	}
	return -1
}

// unixMode returns the mode as chmod takes it.
func unixMode(info fs.FileInfo) uint32 {
	mode := uint32(info.Mode().Perm())
	if info.Mode()&fs.ModeSticky != 0 {
		mode |= 0o1000
	}
	return mode
}
