// Package clock provides a clock that tests control.
package clock

import (
	"sync"
	"time"
)

// Clock stands still until a test moves it.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// New is a clock at a time of no meaning.
func New() *Clock { return &Clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

// Now is the time that the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Add moves the clock.
func (c *Clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
