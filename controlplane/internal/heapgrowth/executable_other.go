//go:build !linux

package heapgrowth

// releaseExecutable does nothing: only Linux returns pages on request.
func releaseExecutable() error { return nil }
