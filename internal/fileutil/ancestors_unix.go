//go:build unix

package fileutil

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/xpkg-dev/xpkg/internal/wording"
)

// worldWrites is the bit of a mode that lets all users write.
const worldWrites fs.FileMode = 0o002

// CheckAncestors refuses a path on which another user can replace a directory or a link. It
// fails with a [ReplaceableError] then. It does not check the entry at the path itself, which
// may be missing, unless it is a symbolic link.
func CheckAncestors(path string) error { return checkAncestors(path, 0) }

func checkAncestors(path string, links int) error {
	if links > maxLinks {
		return &os.PathError{Op: "follow", Path: path, Err: syscall.ELOOP}
	}
	at := "/"
	for _, name := range strings.Split(strings.Trim(path, "/"), "/") {
		parent, err := os.Stat(at)
		if err != nil {
			return missingIsFine(err)
		}
		at = filepath.Join(at, name)
		info, err := os.Lstat(at)
		if err := checkParent(filepath.Dir(at), parent); err != nil {
			return err
		}
		if err != nil {
			return missingIsFine(err)
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		if owner := OwnerOf(info); !isTrusted(owner) {
			return &ReplaceableError{
				At: at, reason: fmt.Sprintf("the symbolic link %s belongs to user %d", at, owner),
				fix: "choose a path that does not contain " + at,
			}
		}
		target, err := os.Readlink(at)
		if err != nil {
			return err
		}
		if !filepath.IsAbs(target) {
			dir, err := filepath.EvalSymlinks(filepath.Dir(at))
			if err != nil {
				return err
			}
			target = filepath.Join(dir, target)
		}
		if err := checkAncestors(filepath.Clean(target), links+1); err != nil {
			return err
		}
	}
	return nil
}

// checkParent refuses a directory in which another user can replace entries of this
// user. The sticky bit prevents that.
func checkParent(path string, info fs.FileInfo) error {
	if owner := OwnerOf(info); !isTrusted(owner) {
		return &ReplaceableError{
			At: path, reason: fmt.Sprintf("the directory %s belongs to user %d", path, owner),
			fix: "choose a directory outside of " + path,
		}
	}
	if info.Mode()&worldWrites != 0 && info.Mode()&fs.ModeSticky == 0 {
		return &ReplaceableError{
			At: path, reason: fmt.Sprintf("%s has mode %04o, without the sticky bit", path, UnixMode(info)),
			fix: "run `chmod o-w " + wording.ShellWord(path) + "`, or choose another directory",
		}
	}
	return nil
}

// missingIsFine returns nil if err reports that a file does not exist.
func missingIsFine(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// isTrusted reports whether a user may own a directory on the way to a directory of this
// user.
func isTrusted(uid int) bool { return uid == 0 || uid == os.Geteuid() || isUnmapped(uid) }

// OwnerOf returns the user that owns a file.
func OwnerOf(info fs.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid)
	}
	return -1
}

// UnixMode returns the mode as chmod takes it.
func UnixMode(info fs.FileInfo) uint32 {
	mode := uint32(info.Mode().Perm())
	if info.Mode()&fs.ModeSticky != 0 {
		mode |= 0o1000
	}
	return mode
}
