package apply

import (
	"context"
	"slices"
	"sync"
	"time"
)

// limiter admits calls in the order of their requests, and no more at once than the limit allows. All calls of a
// Cluster share it.
type limiter struct {
	mu     sync.Mutex
	pace   pace
	writes lane
	reads  lane
	// timer ends a pause for waiting calls.
	timer *time.Timer
}

// lane is the queue of one kind of calls.
type lane struct {
	busy    int
	waiting []chan ticket
}

// ticket admits one call. It is released with the result of the call.
type ticket struct {
	epoch   int
	crowded bool
}

func newLimiter() *limiter { return &limiter{pace: newPace()} }

// acquire waits for the turn of a call, or for the end of ctx.
func (l *limiter) acquire(ctx context.Context, s callSort) (ticket, error) {
	if err := ctx.Err(); err != nil {
		return ticket{}, err
	}
	turn := make(chan ticket, 1)
	l.mu.Lock()
	lane := l.lane(s)
	lane.waiting = append(lane.waiting, turn)
	l.advance()
	l.mu.Unlock()
	select {
	case t := <-turn:
		return t, nil
	case <-ctx.Done():
		l.leave(lane, turn)
		return ticket{}, ctx.Err()
	}
}

// release ends a call and records its result.
func (l *limiter) release(t ticket, a answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a.epoch, a.crowded = t.epoch, t.crowded
	l.pace.answered(time.Now(), a)
	l.lane(a.sort).busy--
	l.advance()
}

// cancel releases the ticket of a call that was not made.
func (l *limiter) cancel(s callSort) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lane(s).busy--
	l.advance()
}

// leave takes one that does not wait any longer out of the lane. Its turn may have
// come at the same moment.
func (l *limiter) leave(lane *lane, turn chan ticket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(lane.waiting, turn); i >= 0 {
		lane.waiting = slices.Delete(lane.waiting, i, i+1)
		return
	}
	lane.busy--
	l.advance()
}

func (l *limiter) lane(s callSort) *lane {
	if s == readAny {
		return &l.reads
	}
	return &l.writes
}

// advance admits waiting calls up to the limit. The mutex must be held.
func (l *limiter) advance() {
	if len(l.writes.waiting)+len(l.reads.waiting) == 0 {
		return
	}
	if pause := time.Until(l.pace.pausedUntil); pause > 0 {
		l.wakeAfter(pause)
		return
	}
	writes, reads := l.pace.rooms()
	l.writes.advance(writes, l.pace.epoch)
	l.reads.advance(reads, l.pace.epoch)
}

func (l *lane) advance(room, epoch int) {
	for l.busy < room && len(l.waiting) > 0 {
		l.busy++
		l.waiting[0] <- ticket{epoch: epoch, crowded: l.busy == room}
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
