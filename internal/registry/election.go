package registry

import (
	"context"
	"log/slog"
	"net/http"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/transport"

	"github.com/xpkg-dev/xpkg/internal/leader"
	"github.com/xpkg-dev/xpkg/internal/registry/cluster"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// election decides which one of the servers in a cluster publishes the index.
type election struct {
	cluster *cluster.Config
	leader.Election
	// next sends requests to the registry.
	next http.RoundTripper
	log  *slog.Logger
	// elected is called when this server becomes the one that publishes.
	elected func()

	// mu is held during a publication, so that the Lease is released after it.
	mu   sync.Mutex
	term *term
}

// term is the time in which this server publishes the index.
type term struct {
	// ctx ends with the term. Readers of the index that are opened in the term use it, too.
	ctx context.Context
	// client writes to the registry only while the Lease is renewed.
	client *remote.Client
}

// run takes part in the election until the context ends.
func (e *election) run(ctx context.Context) error {
	work := func(ctx context.Context, fence transport.WrapperFunc) error {
		client := remote.New(remote.Options{Transport: fence(e.next)})
		defer client.Close()
		e.set(&term{ctx: ctx, client: client})
		defer e.set(nil)
		e.elected()
		<-ctx.Done()
		return nil
	}
	return leader.Run(ctx, e.Election, e.cluster.REST, e.log, logr.Discard(), work)
}

func (e *election) set(t *term) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.term = t
}
