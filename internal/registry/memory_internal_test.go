package registry

import (
	"math"
	"runtime/debug"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/gcstart"
)

// The setting of the garbage collector applies again after the last of several updates at the same time.
func TestTheCollectorHasItsFormerSettingAfterUpdates(t *testing.T) {
	gcstart.End()
	former := debug.SetGCPercent(70)
	t.Cleanup(func() { debug.SetGCPercent(former) })
	growth := func() int {
		is := debug.SetGCPercent(70)
		debug.SetGCPercent(is)
		return is
	}
	limit := debug.SetMemoryLimit(-1)
	first, second := collectEarly(), collectEarly()
	first()
	if is := debug.SetMemoryLimit(-1); is < updateMemory || is == math.MaxInt64 {
		t.Errorf("the limit of the memory is %d during an update", is)
	}
	if is := growth(); is != earlyGrowth {
		t.Errorf("the setting is %d during an update", is)
	}
	second()
	if is := growth(); is != 70 {
		t.Errorf("the setting is %d after the updates", is)
	}
	if is := debug.SetMemoryLimit(-1); is != limit {
		t.Errorf("the limit of the memory is %d after the updates, and was %d", is, limit)
	}
	t.Cleanup(func() { debug.SetMemoryLimit(limit) })
	debug.SetMemoryLimit(updateMemory - 1)
	collectEarly()()
	if is := debug.SetMemoryLimit(-1); is != updateMemory-1 {
		t.Errorf("the limit of the user is %d after an update", is)
	}
	debug.SetGCPercent(earlyGrowth - 1)
	restore := collectEarly()
	if is := growth(); is != earlyGrowth-1 {
		t.Errorf("the setting is %d during an update, and was less before", is)
	}
	restore()
}
