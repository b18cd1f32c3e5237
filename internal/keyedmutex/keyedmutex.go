// Package keyedmutex provides a mutex for each key of a set.
package keyedmutex

import (
	"context"
	"sync"
)

// Mutex locks keys. The zero value is ready for use. A key that is not in use requires no
// memory.
type Mutex[K comparable] struct {
	mu   sync.Mutex
	keys map[K]*entry
}

// entry is the lock of one key. The goroutine that has sent to locked holds it.
type entry struct {
	locked chan struct{}
	users  int
}

// Lock waits until it holds the lock of a key, and returns the function that unlocks it. The
// error is the error of the context if the context ends first.
func (m *Mutex[K]) Lock(ctx context.Context, key K) (unlock func(), err error) {
	e := m.use(key)
	select {
	case e.locked <- struct{}{}:
		return func() {
			<-e.locked
			m.leave(key, e)
		}, nil
	case <-ctx.Done():
		m.leave(key, e)
		return nil, ctx.Err()
	}
}

func (m *Mutex[K]) use(key K) *entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.keys == nil {
		m.keys = map[K]*entry{}
	}
	e := m.keys[key]
	if e == nil {
		e = &entry{locked: make(chan struct{}, 1)}
		m.keys[key] = e
	}
	e.users++
	return e
}

// leave deletes the entry of a key without users.
func (m *Mutex[K]) leave(key K, e *entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.users--; e.users == 0 {
		delete(m.keys, key)
	}
}
