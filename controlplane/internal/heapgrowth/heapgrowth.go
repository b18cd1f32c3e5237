// Package heapgrowth sets how much the heap of a process grows between two garbage collections: much while the process
// is busy, so that it collects rarely, and little while it is idle, so that it holds little memory.
//
// An idle control plane keeps about a hundred megabytes that each collection reads. With a small growth, a client that
// creates many objects causes several collections per second, which take nearly half of the processor time.
package heapgrowth

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

const (
	// usual is the growth in percent of the memory in use. With many custom resources, it reduces peak memory by a third
	// compared with the default of Go.
	usual = 50
	// room is the growth in bytes while the process is busy, if it is more than the usual growth. Until the process is
	// idle for the first time, it is startRoom: most objects that stay are allocated then, and with more garbage between
	// them, they keep up to 50 MB more pages.
	room      = 256 << 20
	startRoom = 64 << 20
	// smallest is the memory in use that the runtime assumes at least.
	smallest = 4 << 20
	// A process is busy if a collection follows another one within busyWithin, until no collection follows within
	// idleAfter.
	busyWithin = 5 * time.Second
	idleAfter  = 10 * time.Second
)

// Start adjusts the growth of the heap from now on, until the process ends. It does nothing if the environment has
// GOGC.
func Start() {
	if os.Getenv("GOGC") != "" {
		return
	}
	afterCollection(newTuner().collected)
}

// A tuner sets the growth after each collection.
type tuner struct {
	mu   sync.Mutex
	busy bool
	room uint64
	// last is the time of the last collection.
	last time.Time
	// idle ends the time in which the process is busy.
	idle *time.Timer
}

// newTuner returns the tuner of a process that starts, and therefore is busy.
func newTuner() *tuner {
	t := &tuner{busy: true, room: startRoom}
	t.idle = time.AfterFunc(idleAfter, t.release)
	debug.SetGCPercent(percent(0, t.room))
	return t
}

// collected sets the growth until the next collection.
func (t *tuner) collected() {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	t.busy = t.busy || now.Sub(t.last) < busyWithin
	t.last = now
	if !t.busy {
		debug.SetGCPercent(usual)
		return
	}
	t.idle.Reset(idleAfter)
	debug.SetGCPercent(percent(inUse(), t.room))
}

// release returns to the usual growth, and returns the memory to the operating system that the process does not need
// when it is idle: the first time also the pages of the executable, most of which only the start needs.
func (t *tuner) release() {
	t.mu.Lock()
	started := t.room == startRoom
	t.busy, t.room = false, room
	debug.SetGCPercent(usual)
	t.mu.Unlock()
	debug.FreeOSMemory()
	if started {
		_ = releaseExecutable() // Without it, the process only holds more memory.
	}
}

// percent returns the growth of inUse bytes by room bytes in percent, or the usual growth if that is more.
func percent(inUse, room uint64) int {
	return max(usual, int(100*room/max(inUse, smallest)))
}

// inUse returns the number of bytes of the heap that the last collection kept.
func inUse() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// afterCollection calls f after each collection.
func afterCollection(f func()) {
	// Nothing refers to the object, so the next collection ends its life. With a pointer in it, it shares no memory with
	// other objects.
	runtime.AddCleanup(&struct{ _ *int }{}, func(struct{}) {
		f()
		afterCollection(f)
	}, struct{}{})
}
