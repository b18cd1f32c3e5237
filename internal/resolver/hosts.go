package resolver

import (
	"context"
	"sync"

	"github.com/xpkg-dev/xpkg/internal/fetch"
)

// hosts bound the requests to each host. The zero value works.
type hostLimiter struct {
	mu  sync.Mutex
	all map[string]chan struct{}
}

// perHost lets a wide tree be read in few rounds. Other package managers ask as many
// at once.
const perHost = 50

// enter waits for leave to ask the host that is asked first, of which most can be
// asked at the same time.
func (h *hostLimiter) acquire(ctx context.Context, o fetch.Origin, most int) (leave func(), err error) {
	host := o.Ref.Host()
	if len(o.Places) > 0 {
		host = o.Places[0].Ref.Host()
	}
	room := h.semaphore(host, most)
	select {
	case room <- struct{}{}:
		return func() { <-room }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (h *hostLimiter) semaphore(host string, most int) chan struct{} {
	if most <= 0 {
		most = perHost
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	room, ok := h.all[host]
	if !ok {
		if h.all == nil {
			h.all = map[string]chan struct{}{}
		}
		room = make(chan struct{}, most)
		h.all[host] = room
	}
	return room
}
