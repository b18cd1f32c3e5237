// Package recent keeps the most recently used results of a computation in memory.
package recent

import (
	"slices"
	"sync"
)

// Results are the most recently used results by their keys. The zero value keeps none; use New.
type Results[K comparable, V any] struct {
	most int

	mu      sync.Mutex
	results []*result[K, V] // The most recently used one is the last.
}

type result[K comparable, V any] struct {
	key   K
	once  sync.Once
	value V
	err   error
}

// New returns an empty collection that keeps a number of results.
func New[K comparable, V any](most int) *Results[K, V] { return &Results[K, V]{most: most} }

// Get returns the result for a key. If it is not kept, Get computes it, once for all concurrent callers. Errors are not kept.
func (r *Results[K, V]) Get(key K, compute func() (V, error)) (V, error) {
	entry := r.use(key)
	entry.once.Do(func() { entry.value, entry.err = compute() })
	if entry.err != nil {
		r.remove(entry)
	}
	return entry.value, entry.err
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
