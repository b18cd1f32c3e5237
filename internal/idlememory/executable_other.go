//go:build !linux

package idlememory

// releaseExecutable does nothing: only Linux returns pages on request.
func releaseExecutable() error { return nil }
