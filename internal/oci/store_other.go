//go:build !unix

package oci

import "io/fs"

// noFollow has no equal here; the store's directory belongs to the user's profile.
const noFollow = 0

// checkOwner has nothing to compare: the directory's access list decides.
func checkOwner(fs.FileInfo) error { return nil }

// syncDir has nothing to do: renames are part of the file system's journal.
func syncDir(string) error { return nil }
