package limit

import (
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mostMemory returns the memory that this process can use: the least of that of the machine, its container and
// GOMEMLIMIT.
func mostMemory() uint64 {
	least := uint64(debug.SetMemoryLimit(-1)) //nolint:gosec // It is positive.
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		least = min(least, uint64(info.Totalram)*uint64(info.Unit))
	}
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, err := os.ReadFile(file)
		if n, failed := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil && failed == nil {
			least = min(least, n)
		}
	}
	return min(least, math.MaxInt64)
}
