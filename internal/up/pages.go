package up

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/internal/registry/pages"
)

// registryPages serves the web pages of the registry. It opens the index at the first request of a page, so that a
// control plane whose pages are not used spends neither time nor memory on them.
type registryPages struct {
	options registry.LocalOptions

	mu     sync.Mutex
	opened *openPages
	closed bool
}

// openPages are the pages after the first request.
type openPages struct {
	handler  http.Handler
	site     *registry.Site
	packages *registry.Packages
	stop     context.CancelFunc
	ended    chan error
}

// ServeHTTP implements [http.Handler]. The first requests wait for the index.
func (p *registryPages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	opened, err := p.open()
	if err == nil {
		err = opened.wait(r.Context())
	}
	if err != nil {
		p.options.Log.Error("cannot serve a page", "error", err)
		http.Error(w, "the pages of the registry are not available; see the log registry.log", http.StatusServiceUnavailable)
		return
	}
	opened.handler.ServeHTTP(w, r)
}

func (p *registryPages) open() (*openPages, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.opened != nil || p.closed {
		return p.opened, nil
	}
	site, packages := registry.NewLocalSite(p.options)
	handler, err := pages.New(site, packages)
	if err != nil {
		return nil, errors.Join(err, packages.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- site.Run(ctx) }()
	p.opened = &openPages{handler: handler, site: site, packages: packages, stop: cancel, ended: ended}
	return p.opened, nil
}

// wait waits for the first index.
func (o *openPages) wait(ctx context.Context) error {
	if o == nil {
		return http.ErrServerClosed
	}
	next, updates := o.site.Updated()
	if updates == 0 {
		select {
		case <-next:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return o.site.Healthy()
}

// changed updates the index after a change of a repository, if it is open.
func (p *registryPages) changed(repository string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.opened != nil {
		p.opened.site.Changed(repository)
	}
}

// close closes the index. No request may be in progress.
func (p *registryPages) close() error {
	p.mu.Lock()
	opened := p.opened
	p.opened, p.closed = nil, true
	p.mu.Unlock()
	if opened == nil {
		return nil
	}
	opened.stop()
	return errors.Join(<-opened.ended, opened.packages.Close())
}
