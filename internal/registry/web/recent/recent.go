// Package recent keeps the most recently used results of a computation in memory.
package recent

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// Results are the most recently used results by their keys. The zero value keeps none; use New.
type Results[K comparable, V any] struct {
	most int

	mu      sync.Mutex
	results []*result[K, V] // The most recently used one is the last.
}

// errUnfinished is the error of a computation that panicked.
var errUnfinished = errors.New("the computation did not end")

type result[K comparable, V any] struct {
	key   K
	once  sync.Once
	value V
	err   error
	// canceled reports whether the caller was canceled that computed the result.
	canceled bool
}

// New returns an empty collection that keeps a number of results.
func New[K comparable, V any](most int) *Results[K, V] { return &Results[K, V]{most: most} }

// Get returns the result for a key. If it is not kept, Get computes it, once for all concurrent callers. Errors are not
// kept, and the error of a caller that is canceled is not shared.
func (r *Results[K, V]) Get(ctx context.Context, key K, compute func(context.Context) (V, error)) (V, error) {
	for {
		entry, own := r.use(key), false
		entry.once.Do(func() {
			own = true
			entry.err = errUnfinished
			entry.value, entry.err = compute(ctx)
			entry.canceled = ctx.Err() != nil
		})
		if entry.err == nil {
			return entry.value, nil
		}
		r.remove(entry)
		if own || !entry.canceled || ctx.Err() != nil {
			return entry.value, entry.err
		}
	}
}

// use returns the entry for a key, which it adds if there is none, and marks it as the most recently used one.
func (r *Results[K, V]) use(key K) *result[K, V] {
	r.mu.Lock()
	defer r.mu.Unlock()
	entry := &result[K, V]{key: key}
	if i := slices.IndexFunc(r.results, func(e *result[K, V]) bool { return e.key == key }); i >= 0 {
		entry = r.results[i]
		r.results = slices.Delete(r.results, i, i+1)
	}
	if r.results = append(r.results, entry); len(r.results) > r.most {
		r.results = slices.Delete(r.results, 0, 1)
	}
	return entry
}

func (r *Results[K, V]) remove(entry *result[K, V]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.results = slices.DeleteFunc(r.results, func(e *result[K, V]) bool { return e == entry })
}
