package cli

import (
	"context"
	"sync"
	"time"

	"github.com/xpkg-dev/xpkg/internal/cache"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// planCacheLimit is what the package cache may have when a plan adds to it: as much
// as a package manager allows that nobody tells otherwise.
const planCacheLimit = 10 << 30

// lateSource gives packages, and opens the package cache with the first question:
// a plan that needs no content needs no cache either.
type lateSource struct {
	mu    sync.Mutex
	flags contentFlags
	// patience bounds how long a registry can make a request wait; what plans have
	// when it is zero.
	patience time.Duration
	cache    *cache.Cache
	source   *fetch.Source
}

func (s *lateSource) open() (*fetch.Source, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.source != nil {
		return s.source, nil
	}
	registries, err := registryFlags{Insecure: s.flags.Insecure, CAFile: s.flags.CAFile}.options(oci.Limits{}, nil)
	if err != nil {
		return nil, err
	}
	registries.MaxRetryAfter = s.patience
	if s.cache, err = s.flags.cacheFlags.open(planCacheLimit); err != nil {
		return nil, err
	}
	s.source = fetch.NewSource(fetch.Options{Remote: registries, Store: s.cache.Store(), Names: s.cache})
	return s.source, nil
}

// asked asks the source, which is opened for that where it is not open.
func asked[T any](s *lateSource, question func(*fetch.Source) (T, error)) (answer T, err error) {
	source, err := s.open()
	if err != nil {
		return answer, err
	}
	return question(source)
}

// Named implements preview.Source.
func (s *lateSource) Named(ctx context.Context, name string) (oci.Digest, error) {
	return asked(s, func(c *fetch.Source) (oci.Digest, error) { return c.Named(ctx, name) })
}

// Resolve implements preview.Source.
func (s *lateSource) Resolve(ctx context.Context, o fetch.Origin, maxAge time.Duration) (oci.Digest, error) {
	return asked(s, func(c *fetch.Source) (oci.Digest, error) { return c.Resolve(ctx, o, maxAge) })
}

// Read implements preview.Source.
func (s *lateSource) Read(ctx context.Context, o fetch.Origin, d oci.Digest, pull bool) (*xpkg.Package, error) {
	return asked(s, func(c *fetch.Source) (*xpkg.Package, error) { return c.Read(ctx, o, d, pull) })
}

// Tags implements resolve.Registry.
func (s *lateSource) Tags(ctx context.Context, o fetch.Origin) (fetch.TagList, error) {
	return asked(s, func(c *fetch.Source) (fetch.TagList, error) { return c.Tags(ctx, o) })
}

// Describe implements resolve.Registry.
func (s *lateSource) Describe(ctx context.Context, o fetch.Origin, d oci.Digest) (fetch.Description, error) {
	return asked(s, func(c *fetch.Source) (fetch.Description, error) { return c.Describe(ctx, o, d) })
}

// Prove implements resolve.Registry.
func (s *lateSource) Prove(ctx context.Context, o fetch.Origin, d oci.Digest) (fetch.Description, error) {
	return asked(s, func(c *fetch.Source) (fetch.Description, error) { return c.Prove(ctx, o, d) })
}

// close closes what was opened.
func (s *lateSource) close() error {
	if s.source == nil {
		return nil
	}
	s.source.Close()
	return s.cache.Close()
}
