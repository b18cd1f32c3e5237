package manager

import (
	"runtime/debug"
	"strconv"
)

// limitMemory makes the garbage collector run more often when the program uses 90 % of the memory limit of its
// container, in bytes, so that it is not killed. The rest is for memory that the Go runtime does not manage. Without a
// limit, or if the user has set GOMEMLIMIT, it does nothing.
func limitMemory(ofContainer, gomemlimit string) {
	if n, err := strconv.ParseInt(ofContainer, 10, 64); err == nil && n > 0 && gomemlimit == "" {
		debug.SetMemoryLimit(n / 10 * 9)
	}
}
