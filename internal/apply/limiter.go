package apply

import (
	"context"
	"slices"
	"sync"
	"time"
)

// limiter admits calls in the order of their requests, up to the limit. All calls of a Cluster share it.
type limiter struct {
	mu          sync.Mutex
	concurrency concurrency
	writes      queue
	reads       queue
	// timer ends a pause for waiting calls.
	timer *time.Timer
}

// queue contains the calls of one kind that wait.
type queue struct {
	// busy is the number of admitted calls that are not released.
	busy    int
	waiting []chan token
}

// token admits one call. It is released with the result of the call.
type token struct {
	// epoch and saturated have the meaning of the fields of [result].
	epoch     int
	saturated bool
}

func newLimiter() *limiter { return &limiter{concurrency: newConcurrency()} }

// acquire waits until a call is admitted, or for the end of ctx.
func (l *limiter) acquire(ctx context.Context, class callClass) (token, error) {
	if err := ctx.Err(); err != nil {
		return token{}, err
	}
	admitted := make(chan token, 1)
	l.mu.Lock()
	queue := l.queue(class)
	queue.waiting = append(queue.waiting, admitted)
	l.advance()
	l.mu.Unlock()
	select {
	case t := <-admitted:
		return t, nil
	case <-ctx.Done():
		l.leave(queue, admitted)
		return token{}, ctx.Err()
	}
}

// release ends a call and records its result.
func (l *limiter) release(t token, r result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.epoch, r.saturated = t.epoch, t.saturated
	l.concurrency.record(time.Now(), r)
	l.queue(r.class).busy--
	l.advance()
}

// cancel releases the token of a call that was not made.
func (l *limiter) cancel(class callClass) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue(class).busy--
	l.advance()
}

// leave removes a call that no longer waits from its queue. The call may have been admitted at the same moment.
func (l *limiter) leave(queue *queue, admitted chan token) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(queue.waiting, admitted); i >= 0 {
		queue.waiting = slices.Delete(queue.waiting, i, i+1)
		return
	}
	queue.busy--
	l.advance()
}

func (l *limiter) queue(class callClass) *queue {
	if class == readAny {
		return &l.reads
	}
	return &l.writes
}

// advance admits waiting calls up to the limit. The mutex must be held.
func (l *limiter) advance() {
	if len(l.writes.waiting)+len(l.reads.waiting) == 0 {
		return
	}
	if pause := time.Until(l.concurrency.pausedUntil); pause > 0 {
		l.wakeAfter(pause)
		return
	}
	writes, reads := l.concurrency.limits()
	l.writes.advance(writes, l.concurrency.epoch)
	l.reads.advance(reads, l.concurrency.epoch)
}

func (l *queue) advance(limit, epoch int) {
	for l.busy < limit && len(l.waiting) > 0 {
		l.busy++
		l.waiting[0] <- token{epoch: epoch, saturated: l.busy == limit}
		l.waiting = l.waiting[1:]
	}
}

func (l *limiter) wakeAfter(pause time.Duration) {
	if l.timer != nil {
		l.timer.Stop()
	}
	l.timer = time.AfterFunc(pause, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.advance()
	})
}
