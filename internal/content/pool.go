package content

import (
	"sync"

	"github.com/xpkg-dev/xpkg/internal/oci"
)

// pool keeps the clients of registries.
type pool struct {
	mu   sync.Mutex
	base oci.RemoteOptions
	one  *oci.Remote
}

func newPool(base oci.RemoteOptions) *pool { return &pool{base: base} }

// get gives the client for a place.
func (p *pool) get(Place) (*oci.Remote, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.one == nil {
		p.one = oci.NewRemote(p.base)
	}
	return p.one, nil
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.one != nil {
		p.one.Close()
	}
}
