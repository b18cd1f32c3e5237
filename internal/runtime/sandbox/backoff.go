package sandbox

import (
	"context"
	"time"
)

const (
	firstPause = time.Second
	longPause  = time.Minute
	// settled is the running time after which earlier exits no longer count.
	settled = time.Minute
)

// backoff is the pause before the next start: it doubles with each end, and starts
// over after a run that was long enough.
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

// sleep waits, and less when the context ends.
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
