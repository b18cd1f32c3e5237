// Package contention limits how often a controller restores an object that another client keeps changing. Without a
// limit, two controllers that disagree write without end.
package contention

import (
	"sync"
	"time"
)

// Limits are the limits for one object.
type Limits struct {
	// Writes is the number of writes within a window after which the controller stops.
	Writes int
	// Window is also the time after which a controller that stopped tries once again.
	Window time.Duration
}

// Change is a change of an object by another client.
type Change struct {
	// Writer is the field manager of the client, or empty if it is unknown.
	Writer string
	// At is the time of the change, or zero if it is unknown.
	At time.Time
}

// History has the recent writes of one object. The zero value is an object that was never restored.
type History struct {
	writes []time.Time
	// stopped reports whether the limit was reached, and refused whether a change after the last write was left.
	stopped, refused bool
}

// Decision is whether to restore an object.
type Decision struct {
	// Write reports whether the controller writes the object now.
	Write bool
	// Last is the last change by another client.
	Last Change
	// Writes is the number of writes in the window before now, and Since the time of the first of them.
	Writes int
	Since  time.Time
	// RetryAt is the time of the next write of a controller that stopped.
	RetryAt time.Time
}

// Decide returns the decision about an object that another client has changed, and its history after that. It is pure.
//
// The controller writes until the limit is reached. Then it writes once in each window, until the other client has left
// the object unchanged for a whole window.
func (l Limits) Decide(h History, c Change, now time.Time) (History, Decision) {
	next := History{stopped: h.stopped, refused: h.refused}
	for _, at := range h.writes {
		if now.Sub(at) < l.Window {
			next.writes = append(next.writes, at)
		}
	}
	limit := l.Writes
	switch {
	case h.stopped && !h.refused && len(next.writes) == 0:
		// The other client left the last write unchanged for a window.
		next.stopped = false
	case h.stopped:
		limit = 1
	}
	d := Decision{Last: c, Writes: len(next.writes)}
	if d.Writes > 0 {
		d.Since = next.writes[0]
	}
	if d.Writes < limit {
		d.Write, next.refused = true, false
		next.writes = append(next.writes, now)
		return next, d
	}
	next.stopped, next.refused = true, true
	d.RetryAt = next.writes[len(next.writes)-1].Add(l.Window)
	return next, d
}

// Brake applies limits to objects. Keys identify objects, for example plan.Ref. It is safe for concurrent use.
type Brake[Key comparable] struct {
	Limits Limits
	Now    func() time.Time

	mu      sync.Mutex
	history map[Key]History
}

// Restore decides whether the controller writes an object that another client has changed. It counts the write.
func (b *Brake[Key]) Restore(object Key, c Change) Decision {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.history == nil {
		b.history = map[Key]History{}
	}
	h, d := b.Limits.Decide(b.history[object], c, b.Now())
	b.history[object] = h
	return d
}

// Forget removes the history of an object that no longer exists.
func (b *Brake[Key]) Forget(object Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.history, object)
}
