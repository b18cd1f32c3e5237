package apply

import (
	"context"
	"slices"
	"sync"
	"time"
)

// limiter gives calls their turn: in the order in which they ask, and no more of
// them at once than the pace allows. Everything that one Cluster does shares it.
type limiter struct {
	mu     sync.Mutex
	pace   pace
	writes lane
	reads  lane
	// timer ends a pause for those that wait.
	timer *time.Timer
}

// lane is what one sort of call waits in.
type lane struct {
	busy    int
	waiting []chan ticket
}

// ticket allows one call. It is given back with what the call says of the server.
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

// release gives a turn back and takes what the call says about the server.
func (l *limiter) release(t ticket, a answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a.epoch, a.crowded = t.epoch, t.crowded
	l.pace.answered(time.Now(), a)
	l.lane(a.sort).busy--
	l.advance()
}

// cancel gives back the turn of a call that was not made.
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

// advance lets those begin for whom there is room. The mutex is held.
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
