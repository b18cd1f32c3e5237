//go:build !unix

package store

import (
	"io/fs"
	"os"
)

// noFollow has no equivalent on this platform; the store's directory is in the user's
// profile.
const noFollow = 0

// noWait has no equivalent on this platform, where folders contain no named pipes.
const noWait = 0

// tryLock does nothing: an open file cannot be removed on this platform.
func tryLock(*os.File, bool) bool { return true }

// settle closes a file and renames it to its final name, in this order: an open file
// cannot be renamed on this platform.
func settle(f *os.File, path string) error {
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// checkOwner does nothing: access is controlled by the access list of the directory.
func checkOwner(fs.FileInfo) error { return nil }

// syncDir does nothing: the file system journals renames.
func syncDir(string) error { return nil }
