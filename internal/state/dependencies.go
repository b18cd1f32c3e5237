package state

import (
	"context"
	"sync"

	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Dependencies caches the dependencies of contents by digest, so that each content is read once.
type Dependencies struct {
	Content Content

	mu    sync.Mutex
	known map[string][]dependency.Dependency
	// optional are the repositories that any known content names as optional dependencies.
	optional map[string]bool
}

// Of returns the dependencies of the content with a digest, including optional ones. It does not
// pull content that is missing from the cache, and returns no dependencies for it; the revision
// reports that its content is missing.
func (c *Dependencies) Of(ctx context.Context, image, digest string) []dependency.Dependency {
	known, _ := c.Lookup(ctx, image, digest)
	return known
}

// Lookup is like Of, and also reports whether the dependencies are known.
func (c *Dependencies) Lookup(ctx context.Context, image, digest string) (_ []dependency.Dependency, ok bool) {
	ref, err := oci.ParseReference(image, oci.ParseOptions{})
	if err != nil {
		return nil, false
	}
	c.mu.Lock()
	known, ok := c.known[digest]
	c.mu.Unlock()
	if ok {
		return known, true
	}
	d, err := oci.ParseDigest(digest)
	if err != nil {
		return nil, false
	}
	pkg, err := c.Content.Read(ctx, fetch.Plain(ref), d, false)
	if err != nil {
		return nil, false
	}
	return c.Add(digest, pkg.Meta), true
}

// Add records the dependencies of the content with a digest, and returns them. The digest is empty
// for a revision that another package manager created; only its optional dependencies are recorded
// then.
func (c *Dependencies) Add(digest string, meta xpkg.Meta) []dependency.Dependency {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known, c.optional = map[string][]dependency.Dependency{}, map[string]bool{}
	}
	for _, d := range meta.Optional {
		c.optional[oci.RepositoryName(d.Package)] = true
	}
	all := meta.Dependencies()
	if digest != "" {
		c.known[digest] = all
	}
	return all
}

// IsOptional reports whether any known content names a repository as an optional dependency.
func (c *Dependencies) IsOptional(repository string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.optional[repository]
}
