package registry_test

import (
	"sync/atomic"
	"time"
)

// clock is the time of a server in a test, which several goroutines read.
type clock struct {
	start time.Time
	added atomic.Int64
}

func newClock() *clock { return &clock{start: time.Now()} }

func (c *clock) read() time.Time { return c.start.Add(time.Duration(c.added.Load())) }

func (c *clock) add(d time.Duration) { c.added.Add(int64(d)) }
