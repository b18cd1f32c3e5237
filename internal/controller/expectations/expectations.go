// Package expectations records the writes of this process until a read shows them. The client
// library answers reads from a cache that lags behind writes. A decision that is based on a stale
// read would repeat the write, or mistake it for a change by another client.
package expectations

import "sync"

// Cache holds the values that were written last, by key. The zero value is ready for use, and a
// Cache is safe for concurrent use.
type Cache[K comparable, V any] struct {
	mu     sync.Mutex
	values map[K]V
}

// Set records a value.
func (c *Cache[K, V]) Set(key K, value V) {
	c.Update(key, func(V) V { return value })
}

// Update replaces the value of a key with the result of f. The argument of f is the recorded value,
// or the zero value if there is none.
func (c *Cache[K, V]) Update(key K, f func(V) V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.values == nil {
		c.values = map[K]V{}
	}
	c.values[key] = f(c.values[key])
}

// Get returns the recorded value of a key.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	value, ok = c.values[key]
	return value, ok
}

// Pending returns the recorded value of a key. If seen reports that the reads of the caller show
// the value, Pending forgets it and returns false.
func (c *Cache[K, V]) Pending(key K, seen func(V) bool) (value V, pending bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	value, pending = c.values[key]
	if pending && seen(value) {
		delete(c.values, key)
		var none V
		return none, false
	}
	return value, pending
}

// Forget drops the value of a key.
func (c *Cache[K, V]) Forget(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.values, key)
}

// Len returns the number of recorded values.
func (c *Cache[K, V]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.values)
}
