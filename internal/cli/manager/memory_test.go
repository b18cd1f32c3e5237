package manager

import (
	"math"
	"runtime/debug"
	"testing"
)

// The limit of the garbage collector leaves a part of the memory of the container free, unless the user has set it.
func TestLimitMemory(t *testing.T) {
	was := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(was)
	for _, tc := range []struct {
		container, user string
		want            int64
	}{{"1000000000", "", 900000000}, {"1000000000", "400MiB", math.MaxInt64}, {"", "", math.MaxInt64},
		{"many", "", math.MaxInt64}} {
		debug.SetMemoryLimit(math.MaxInt64)
		limitMemory(tc.container, tc.user)
		if got := debug.SetMemoryLimit(-1); got != tc.want {
			t.Errorf("%q, %q: the limit is %d, want %d", tc.container, tc.user, got, tc.want)
		}
	}
}
