package registry

import (
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
	first, second := collectEarly(), collectEarly()
	first()
	if is := growth(); is != earlyGrowth {
		t.Errorf("the setting is %d during an update", is)
	}
	second()
	if is := growth(); is != 70 {
		t.Errorf("the setting is %d after the updates", is)
	}
	debug.SetGCPercent(earlyGrowth - 1)
	restore := collectEarly()
	if is := growth(); is != earlyGrowth-1 {
		t.Errorf("the setting is %d during an update, and was less before", is)
	}
	restore()
}
