package registry

import (
	"runtime"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"sync"

	"github.com/xpkg-dev/xpkg/internal/gcstart"
)

// mostHeap is the size of the heap in bytes from which memory is returned to the operating system after a change of an
// index.
const mostHeap = 64 << 20

// releaseMemory returns the memory to the operating system that an update of a large index has left. The runtime does
// so minutes later, and keeps as much as the update needed at most.
func releaseMemory() {
	var m runtime.MemStats
	if runtime.ReadMemStats(&m); m.HeapSys-m.HeapReleased > mostHeap {
		debug.FreeOSMemory()
	}
}

// earlyGrowth is the growth of the heap in percent after which the garbage collector runs during an update.
const earlyGrowth = 25

// During an update, the memory of Go may grow to updateMemory, or by updateGrowth if the process keeps more. Above
// that, the garbage collector uses up to half of the processor time.
const (
	updateMemory = 128 << 20
	updateGrowth = 64 << 20
)

// collector has the setting of the garbage collector outside of updates, and the number of updates that run.
var collector struct {
	sync.Mutex
	updates, growth int
	limit           int64
}

// collectEarly makes the garbage collector of the process run early until restore is called. An update makes several
// times as much garbage as it keeps, and no client waits for it, so it trades processor time for memory.
func collectEarly() (restore func()) {
	collector.Lock()
	defer collector.Unlock()
	if collector.updates++; collector.updates == 1 {
		gcstart.End()
		collector.growth = debug.SetGCPercent(earlyGrowth)
		if collector.growth >= 0 && collector.growth < earlyGrowth {
			debug.SetGCPercent(collector.growth)
		}
		live := []runtimemetrics.Sample{{Name: "/gc/heap/live:bytes"}}
		runtimemetrics.Read(live)
		limit := max(updateMemory, int64(live[0].Value.Uint64())+updateGrowth)
		if collector.limit = debug.SetMemoryLimit(-1); limit < collector.limit {
			debug.SetMemoryLimit(limit)
		}
	}
	return func() {
		collector.Lock()
		defer collector.Unlock()
		if collector.updates--; collector.updates == 0 {
			debug.SetGCPercent(collector.growth)
			debug.SetMemoryLimit(collector.limit)
		}
	}
}
