package remote

import (
	"context"
	"sync"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// flights lets one goroutine at a time deal with a digest, so that packages that
// share content do not download it twice.
type flights struct {
	mu   sync.Mutex
	busy map[oci.Digest]chan struct{}
}

// enter waits until no other goroutine processes the digest. The caller calls leave when
// it is done.
func (f *flights) enter(ctx context.Context, d oci.Digest) (leave func(), err error) {
	for {
		f.mu.Lock()
		other, taken := f.busy[d]
		if !taken {
			mine := make(chan struct{})
			if f.busy == nil {
				f.busy = map[oci.Digest]chan struct{}{}
			}
			f.busy[d] = mine
			f.mu.Unlock()
			return func() { f.leave(d, mine) }, nil
		}
		f.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-other:
		}
	}
}

func (f *flights) leave(d oci.Digest, mine chan struct{}) {
	f.mu.Lock()
	delete(f.busy, d)
	f.mu.Unlock()
	close(mine)
}
