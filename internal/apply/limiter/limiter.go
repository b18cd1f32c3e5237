// Package limiter limits the concurrent calls to an API server: it admits as many as the server carries out without
// delay, which it learns from the results of earlier ones.
package limiter

import (
	"context"
	"slices"
	"sync"
	"time"
)

// A Limiter admits calls in the order of their requests, up to the limit. It is safe for concurrent use.
type Limiter struct {
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
	waiting []chan Token
}

// Token admits one call. It is released with the result of the call.
type Token struct {
	// epoch and saturated have the meaning of the fields of [Result].
	epoch     int
	saturated bool
}

// New returns a limiter without results.
func New() *Limiter { return &Limiter{concurrency: newConcurrency()} }

// Acquire waits until a call is admitted, or for the end of ctx.
func (l *Limiter) Acquire(ctx context.Context, class Class) (Token, error) {
	if err := ctx.Err(); err != nil {
		return Token{}, err
	}
	admitted := make(chan Token, 1)
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
		return Token{}, ctx.Err()
	}
}

// Release ends a call and records its result.
func (l *Limiter) Release(t Token, r Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.epoch, r.saturated = t.epoch, t.saturated
	l.concurrency.record(time.Now(), r)
	l.queue(r.Class).busy--
	l.advance()
}

// Cancel releases the token of a call that was not made.
func (l *Limiter) Cancel(class Class) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue(class).busy--
	l.advance()
}

// leave removes a call that no longer waits from its queue. The call may have been admitted at the same moment.
func (l *Limiter) leave(queue *queue, admitted chan Token) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(queue.waiting, admitted); i >= 0 {
		queue.waiting = slices.Delete(queue.waiting, i, i+1)
		return
	}
	queue.busy--
	l.advance()
}

func (l *Limiter) queue(class Class) *queue {
	if class == Read {
		return &l.reads
	}
	return &l.writes
}

// advance admits waiting calls up to the limit. The mutex must be held.
func (l *Limiter) advance() {
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
		l.waiting[0] <- Token{epoch: epoch, saturated: l.busy == limit}
		l.waiting = l.waiting[1:]
	}
}

func (l *Limiter) wakeAfter(pause time.Duration) {
	if l.timer != nil {
		l.timer.Stop()
	}
	l.timer = time.AfterFunc(pause, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.advance()
	})
}
