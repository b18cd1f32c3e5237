package manager

import (
	"context"
	"sync"

	"github.com/xpkg-dev/xpkg/internal/content"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/oci"
)

// needs knows what contents depend on. That follows from the digest, so each content
// is read once.
type needs struct {
	content Content
	mu      sync.Mutex
	known   map[string][]format.Dependency
}

// of gives the dependencies of content. What is not in the cache is not pulled for
// that, and is taken to need nothing: the revision that it belongs to says that it is
// missing.
func (n *needs) of(ctx context.Context, ref oci.Reference, digest string) []format.Dependency {
	n.mu.Lock()
	known, ok := n.known[digest]
	n.mu.Unlock()
	if ok {
		return known
	}
	d, err := oci.ParseDigest(digest)
	if err != nil {
		return nil
	}
	pkg, err := n.content.Read(ctx, content.Plain(ref), d, false)
	if err != nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known == nil {
		n.known = map[string][]format.Dependency{}
	}
	n.known[digest] = pkg.Meta.DependsOn
	return pkg.Meta.DependsOn
}
