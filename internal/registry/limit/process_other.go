//go:build !linux

package limit

// mostMemory returns the memory that this process is expected to have.
func mostMemory() uint64 { return 4 << 30 }
