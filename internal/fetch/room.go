package fetch

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// room is the part of the memory for parsing that one package has.
type room struct {
	memory     *semaphore.Weighted
	all, taken int64
}

// take waits until there is room for so many bytes. Whoever wants more than there
// is gets all of it, and is alone then.
func (r *room) take(ctx context.Context, bytes int64) error {
	r.leave()
	bytes = min(bytes, r.all)
	if err := r.memory.Acquire(ctx, bytes); err != nil {
		return err
	}
	r.taken = bytes
	return nil
}

func (r *room) leave() {
	r.memory.Release(r.taken)
	r.taken = 0
}

// locks let one goroutine at a time deal with a key.
type locks[K comparable] struct {
	mu   sync.Mutex
	busy map[K]chan struct{}
}

// enter waits until nobody else deals with the key, or the context ends. The
// caller calls leave when it is done.
func (l *locks[K]) enter(ctx context.Context, key K) (leave func(), err error) {
	for {
		l.mu.Lock()
		other, taken := l.busy[key]
		if !taken {
			mine := make(chan struct{})
			if l.busy == nil {
				l.busy = map[K]chan struct{}{}
			}
			l.busy[key] = mine
			l.mu.Unlock()
			return func() { l.leave(key, mine) }, nil
		}
		l.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-other:
		}
	}
}

func (l *locks[K]) leave(key K, mine chan struct{}) {
	l.mu.Lock()
	delete(l.busy, key)
	l.mu.Unlock()
	close(mine)
}
