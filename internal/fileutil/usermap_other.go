//go:build unix && !linux

package fileutil

// isUnmapped returns false: there are no user namespaces.
func isUnmapped(int) bool { return false }
