// Package contention limits how often the manager writes an object that another client keeps changing. Without a
// limit, two controllers that disagree write without end.
//
// [Limits.Decide] is the decision. A [Brake] applies it to every write of a controller:
// [Brake.Client] for typed objects, and [apply.Cluster.WithBrake] for the objects of packages.
package contention

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Limits are the limits for one object.
type Limits struct {
	// Writes is the number of writes within a window after which the controller stops.
	Writes int
	// Window is the time in which writes are counted, and the time after which a stopped controller
	// writes once again.
	Window time.Duration
}

// DefaultLimits are the limits of the manager.
var DefaultLimits = Limits{Writes: 5, Window: 10 * time.Minute}

// Change is a change of an object by another client.
type Change struct {
	// Writer is the field manager of the client, or empty if it is unknown.
	Writer string
	// At is the time of the change, or zero if it is unknown.
	At time.Time
	// UID is the UID of the object. Deleted reports that the object does not exist any more.
	UID     types.UID
	Deleted bool
}

// History holds the recent writes of one desired state of an object. The zero value is the history
// of a state that was never written.
type History struct {
	writes []time.Time
	// stopped reports whether the limit was reached, and refused whether the last decision was not
	// to write.
	stopped, refused bool
}

// Decision is the result of [Limits.Decide].
type Decision struct {
	// Write reports whether the controller writes the object now.
	Write bool
	// Writes is the number of writes in the window before now, and Since the time of the first of them.
	Writes int
	Since  time.Time
	// RetryAt is the time of the next write if Write is false.
	RetryAt time.Time
}

// Decide decides whether to write a desired state that another client may have changed. It returns
// the history after the decision, and the decision. It is pure.
//
// The controller writes until the limit is reached. Then it writes once in each window, until the other client has left
// the object unchanged for a whole window.
func (l Limits) Decide(h History, now time.Time) (History, Decision) {
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
	d := Decision{Writes: len(next.writes)}
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

// withoutLast returns the history without its last write, which failed.
func (h History) withoutLast() History {
	if len(h.writes) > 0 {
		h.writes = h.writes[:len(h.writes)-1]
	}
	return h
}
