package sandbox

import (
	"context"
	"time"
)

const (
	firstPause = time.Second
	longPause  = time.Minute
	// settled is the running time after which the pause starts at firstPause again.
	settled = time.Minute
)

// backoff computes the pause before the next start. The pause doubles with each exit up to
// longPause, and starts at firstPause again after a run of at least settled.
type backoff struct{ next time.Duration }

// after returns the delay before the next start, after a run of the given duration.
func (b *backoff) after(ran time.Duration) time.Duration {
	if b.next == 0 || ran >= settled {
		b.next = firstPause
	}
	pause := b.next
	b.next = min(2*b.next, longPause)
	return pause
}

// sleep waits for a duration. It returns the cause of the context if the context ends first.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
