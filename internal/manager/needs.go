package manager

import (
	"context"
	"sync"

	"github.com/xpkg-dev/xpkg/internal/content"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/lockfile"
	"github.com/xpkg-dev/xpkg/internal/oci"
)

// needs knows what contents depend on. That follows from the digest, so each content
// is read once.
type needs struct {
	content Content
	mu      sync.Mutex
	known   map[string][]format.Dependency
	// optional are the repositories that anything known would work with.
	optional map[string]bool
}

// of gives the dependencies of content, those that need not be there among them. What
// is not in the cache is not pulled for that, and is taken to need nothing: the revision
// that it belongs to says that it is missing.
func (n *needs) of(ctx context.Context, ref oci.Reference, digest string) []format.Dependency {
	known, _ := n.look(ctx, ref, digest)
	return known
}

// look is of, and tells whether the content is at hand.
func (n *needs) look(ctx context.Context, ref oci.Reference, digest string) (_ []format.Dependency, ok bool) {
	n.mu.Lock()
	known, ok := n.known[digest]
	n.mu.Unlock()
	if ok {
		return known, true
	}
	d, err := oci.ParseDigest(digest)
	if err != nil {
		return nil, false
	}
	pkg, err := n.content.Read(ctx, content.Plain(ref), d, false)
	if err != nil {
		return nil, false
	}
	return n.learn(digest, pkg.Meta), true
}

// learn notes what the content with a digest says. The digest is empty where another
// package manager has made the revision: then there is nothing to know it by.
func (n *needs) learn(digest string, meta format.Meta) []format.Dependency {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known == nil {
		n.known, n.optional = map[string][]format.Dependency{}, map[string]bool{}
	}
	for _, d := range meta.Optional {
		n.optional[lockfile.Repository(d.Package)] = true
	}
	all := meta.Dependencies()
	if digest != "" {
		n.known[digest] = all
	}
	return all
}

// isOptional reports whether anything known would work with a repository.
func (n *needs) isOptional(repository string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.optional[repository]
}
