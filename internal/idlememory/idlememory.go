// Package idlememory returns the memory of a process to the operating system when the process becomes idle after much
// work. The Go runtime does so minutes later, and keeps what the last garbage collection left.
package idlememory

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// interval is the time between two measurements.
	interval = time.Second
	// quiet is the number of bytes that an idle process allocates in an interval at most: informers receive bookmarks, and
	// leases are renewed.
	quiet = 512 << 10
	// much is the number of bytes that a process has allocated since the last release before memory is released again. A
	// release collects garbage, which takes some milliseconds of processor time for each ten megabytes that are in use.
	much = 16 << 20
)

// Run releases memory whenever the process becomes idle, until ctx ends, and the pages of the executable the first
// time: with every release, the process would read the pages that it uses again.
func Run(ctx context.Context) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var w work
	isFirst := true
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if w.isOver(allocated()) {
				debug.FreeOSMemory()
				if isFirst {
					_ = releaseExecutable() // Without it, the process only holds more memory.
				}
				isFirst = false
			}
		}
	}
}

// allocated returns the number of bytes that the process has allocated since its start.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// work recognizes the end of much work from the allocations of the process.
type work struct {
	// last are the allocations at the last measurement, and released those at the last release.
	last, released uint64
}

// isOver reports whether memory is to be released, for the allocations since the start of the process.
func (w *work) isOver(allocated uint64) bool {
	over := allocated-w.last <= quiet && allocated-w.released >= much
	if over {
		w.released = allocated
	}
	w.last = allocated
	return over
}
