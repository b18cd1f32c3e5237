// Package gcstart delays the first garbage collection. The packages that a program imports allocate a few MB before
// main starts, and keep them; to collect garbage then takes a tenth of the time of a short command and frees almost
// nothing.
//
// A program uses it with a blank import. The delay begins when this package is initialized, which is early because it
// imports little, and ends with the first garbage collection.
package gcstart

import (
	"runtime"
	"runtime/debug"
	"sync"
)

const (
	// usual is the value of GOGC unless the user sets another one.
	usual = 100
	// untilFirst makes the first collection start at a heap of 16 MiB instead of 4 MiB.
	untilFirst = 4 * usual
)

func init() {
	if set := debug.SetGCPercent(untilFirst); set != usual {
		debug.SetGCPercent(set)
		return
	}
	delayed = true
	// Nothing refers to the object, so the first collection ends its life. With a pointer in it,
	// it shares no memory with other objects.
	runtime.AddCleanup(&struct{ _ *int }{}, func(struct{}) { End() }, struct{}{})
}

var (
	mu sync.Mutex
	// delayed reports that the first collection is delayed.
	delayed bool
)

// End ends the delay, if it has not ended. A program calls it before it sets a percentage itself.
func End() {
	mu.Lock()
	defer mu.Unlock()
	if delayed {
		debug.SetGCPercent(usual)
		delayed = false
	}
}
