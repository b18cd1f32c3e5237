package manager

import (
	"context"
	"sync"
)

// turns lets one at a time deal with the programs of a package.
type turns struct {
	mu  sync.Mutex
	all map[packageKey]*turn
}

// turn is that of one package. Who has put something into free has it.
type turn struct {
	free    chan struct{}
	wanting int
}

// take waits for the turn of a package. It fails when the context ends before.
func (t *turns) take(ctx context.Context, key packageKey) (leave func(), err error) {
	t.mu.Lock()
	if t.all == nil {
		t.all = map[packageKey]*turn{}
	}
	one := t.all[key]
	if one == nil {
		one = &turn{free: make(chan struct{}, 1)}
		t.all[key] = one
	}
	one.wanting++
	t.mu.Unlock()
	select {
	case one.free <- struct{}{}:
		return func() {
			<-one.free
			t.give(key, one)
		}, nil
	case <-ctx.Done():
		t.give(key, one)
		return nil, ctx.Err()
	}
}

// give forgets a package that nobody deals with any more.
func (t *turns) give(key packageKey, one *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one.wanting--; one.wanting == 0 {
		delete(t.all, key)
	}
}
