package state

import (
	"context"
	"sync"

	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Dependencies caches the dependencies of contents by digest, so that each content is read once.
type Dependencies struct {
	Content Content

	mu    sync.Mutex
	known map[string][]dependency.Dependency
	// required are the kinds that contents require, and defined whether contents define kinds.
	required map[string][]dependency.KindRef
	defined  map[definedKind]bool
	// optional are the repositories that any known content names as optional dependencies.
	optional map[string]bool
}

// definedKind is a kind and the digest of a content.
type definedKind struct {
	digest string
	kind   dependency.KindRef
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
	c.mu.Lock()
	known, ok := c.known[digest]
	c.mu.Unlock()
	if ok {
		return known, true
	}
	pkg, ok := c.read(ctx, image, digest)
	if !ok {
		return nil, false
	}
	return c.Add(digest, pkg.Meta), true
}

// read returns the content with a digest, and false if it is not in the cache.
func (c *Dependencies) read(ctx context.Context, image, digest string) (*xpkg.Package, bool) {
	ref, err := oci.ParseReference(image, oci.ParseOptions{})
	if err != nil {
		return nil, false
	}
	d, err := oci.ParseDigest(digest)
	if err != nil {
		return nil, false
	}
	pkg, err := c.Content.Read(ctx, fetch.Plain(ref), d, false)
	return pkg, err == nil
}

// Requires returns the kinds that the content with a digest requires. Like Of, it returns none for content that is
// missing from the cache.
func (c *Dependencies) Requires(ctx context.Context, image, digest string) []dependency.KindRef {
	if _, ok := c.Lookup(ctx, image, digest); !ok {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.required[digest]
}

// Defines reports whether the content with a digest defines a kind. Content that is missing from the cache defines
// none.
func (c *Dependencies) Defines(ctx context.Context, image, digest string, kind dependency.KindRef) bool {
	key := definedKind{digest, kind}
	c.mu.Lock()
	defines, ok := c.defined[key]
	c.mu.Unlock()
	if ok {
		return defines
	}
	pkg, ok := c.read(ctx, image, digest)
	if !ok {
		return false
	}
	defines = provide.DefinesKind(pkg, kind)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.defined == nil {
		c.defined = map[definedKind]bool{}
	}
	c.defined[key] = defines
	return defines
}

// Add records the dependencies of the content with a digest, and returns them. The digest is empty
// for a revision that another package manager created; only its optional dependencies are recorded
// then.
func (c *Dependencies) Add(digest string, meta xpkg.Meta) []dependency.Dependency {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known, c.required, c.optional = map[string][]dependency.Dependency{}, map[string][]dependency.KindRef{},
			map[string]bool{}
	}
	for _, d := range meta.Optional {
		c.optional[oci.RepositoryLocation(d.Package)] = true
	}
	all := meta.Dependencies()
	if digest != "" {
		c.known[digest], c.required[digest] = all, meta.Kinds
	}
	return all
}

// IsOptional reports whether any known content names a repository as an optional dependency.
func (c *Dependencies) IsOptional(repository string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.optional[oci.RepositoryLocation(repository)]
}
