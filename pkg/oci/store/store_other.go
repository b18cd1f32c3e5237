//go:build !unix

package store

import (
	"io/fs"
	"os"
)

// noFollow has no equal here; the store's directory belongs to the user's profile.
const noFollow = 0

// noWait has no equal here, and neither have named pipes in folders.
const noWait = 0

// tryLock has nothing to do: an open file cannot be removed here.
func tryLock(*os.File, bool) bool { return true }

// settle closes a file and renames it to its final name, in this order: an open file
// cannot be renamed here.
func settle(f *os.File, path string) error {
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// checkOwner has nothing to compare: the directory's access list decides.
func checkOwner(fs.FileInfo) error { return nil }

// syncDir has nothing to do: renames are part of the file system's journal.
func syncDir(string) error { return nil }
