package controller

import (
	"context"
	"time"
)

const (
	// stallLimit is how long the API server may establish nothing before it is
	// woken. It needs a third of a second for a definition, and several API servers
	// that work together let each wait for five seconds, which does no harm.
	stallLimit = 2 * time.Second
	// wakeAtOnce bounds how many definitions are looked at then. Those that an API
	// server left half established when it ended are few: it works on one at a time.
	wakeAtOnce = 8
)

// stall notices that the API server does not get on with establishing.
type stall struct {
	left  int
	since time.Time
}

// lasts reports whether the number of definitions that are left has not changed for
// the limit, and then starts anew.
func (s *stall) lasts(left int, now time.Time) bool {
	if left != s.left {
		s.left, s.since = left, now
		return false
	}
	if now.Sub(s.since) < stallLimit {
		return false
	}
	s.since = now
	return true
}

// pace is how fast the API server establishes definitions.
type pace struct {
	left  int
	since time.Time
}

// pause is how long to wait before the next look, when so many definitions are left:
// until half of them could be there, so that a large package costs a few looks more
// than a small one, and its end is not missed. It is no longer than one has waited so
// far, since what begins slowly may go on faster.
func (p *pace) pause(left int, now time.Time) time.Duration {
	if p.since.IsZero() {
		p.left, p.since = left, now
	}
	waited := now.Sub(p.since)
	next := waited
	if done := p.left - left; done > 0 {
		next = min(waited, waited*time.Duration(left)/time.Duration(2*done))
	}
	return min(max(next, establishedPoll), establishedPause)
}

// wake makes the API server go on with definitions that it left half established.
func (r *revisionReconciler) wake(ctx context.Context, missing []string) error {
	for _, name := range missing[:min(wakeAtOnce, len(missing))] {
		if err := r.cluster.Wake(ctx, name); err != nil {
			return err
		}
	}
	return nil
}
