//go:build !linux

package filetree

// Sync does nothing on systems other than Linux.
func Sync(string) error { return nil }
