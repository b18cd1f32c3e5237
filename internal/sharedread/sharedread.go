// Package sharedread shares the results of reads between concurrent callers.
package sharedread

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/xpkg-dev/xpkg/internal/pause"
)

const (
	// spacing is the shortest time between the beginnings of two reads whose results are shared.
	spacing = 100 * time.Millisecond
	// part limits reads that take long, as of an API server with much work, to a fifth of the time, and maxSpacing limits
	// the time between two beginnings.
	part, maxSpacing = 5, time.Second
)

// A Read is a read of state that is the same for all callers, such as discovery. Concurrent callers share its results,
// so that the number of reads depends on the time and not on the number of packages. The zero value is ready for use.
type Read[T any] struct {
	mu   sync.Mutex
	last *sharing[T]
}

// sharing is one read. Its result may be read after done is closed.
type sharing[T any] struct {
	began time.Time
	// next is the earliest beginning of the next read.
	next  time.Time
	done  chan struct{}
	value T
	err   error
}

// Get returns the result of a read that began at most maxAge before the call; with 0, after it. A failed read is shared
// only by the callers that wait for it, and a read that was canceled by its caller not at all.
func (s *Read[T]) Get(ctx context.Context, maxAge time.Duration, read func(context.Context) (T, error)) (T, error) {
	after := time.Now().Add(-maxAge)
	for {
		current, own := s.join(after)
		if own {
			return s.run(ctx, current, read)
		}
		select {
		case <-current.done:
		case <-ctx.Done():
			var none T
			return none, ctx.Err()
		}
		if current.began.After(after) && !isCanceled(current.err) {
			return current.value, current.err
		}
	}
}

// Last returns the result of the last read, if it has ended without an error and began at most maxAge ago.
func (s *Read[T]) Last(maxAge time.Duration) (value T, ok bool) {
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	if last == nil || !last.isOver() || last.err != nil || time.Since(last.began) > maxAge {
		return value, false
	}
	return last.value, true
}

// join returns the last read, or a new one that the caller has to run: if the last one has ended and is too old, or has
// failed.
func (s *Read[T]) join(after time.Time) (current *sharing[T], own bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := s.last; last != nil && !last.isOver() || last != nil && last.err == nil && last.began.After(after) {
		return last, false
	}
	next := &sharing[T]{done: make(chan struct{}), began: time.Now()}
	if s.last != nil && s.last.next.After(next.began) {
		next.began = s.last.next
	}
	s.last = next
	return next, true
}

// run waits until the read begins, and carries it out.
func (*Read[T]) run(ctx context.Context, current *sharing[T], read func(context.Context) (T, error)) (T, error) {
	defer close(current.done)
	if wait := time.Until(current.began); wait > 0 {
		if current.err = pause.For(ctx, wait); current.err != nil {
			return current.value, current.err
		}
	}
	current.value, current.err = read(ctx)
	took := time.Since(current.began)
	current.next = current.began.Add(min(max(part*took, spacing), max(maxSpacing, took)))
	if err := ctx.Err(); err != nil && current.err != nil {
		current.err = err
	}
	return current.value, current.err
}

func (s *sharing[T]) isOver() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// isCanceled reports whether a read failed because the context of its caller ended.
func isCanceled(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
