package fetch

import (
	"context"
	"sync"
)

// requestsPerHost limits the concurrent requests to one host. It is the limit of other package
// managers, and large enough to read a wide tree in few rounds.
const requestsPerHost = 50

// hostLimiter limits the concurrent requests to each host. The zero value is ready for use.
type hostLimiter struct {
	mu    sync.Mutex
	slots map[string]chan struct{}
}

// acquire waits for a free slot of the first host of an origin, and returns the function that
// releases the slot.
func (h *hostLimiter) acquire(ctx context.Context, o Origin) (release func(), err error) {
	host := o.Ref.Host()
	if len(o.Endpoints) > 0 {
		host = o.Endpoints[0].Ref.Host()
	}
	slots := h.of(host)
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (h *hostLimiter) of(host string) chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	slots, ok := h.slots[host]
	if !ok {
		if h.slots == nil {
			h.slots = map[string]chan struct{}{}
		}
		slots = make(chan struct{}, requestsPerHost)
		h.slots[host] = slots
	}
	return slots
}
