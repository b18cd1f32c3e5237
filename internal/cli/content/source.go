// Package content reads packages through the package cache of this machine.
package content

import (
	"context"
	"sync"
	"time"

	"github.com/xpkg-dev/xpkg/internal/cache"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/internal/signature"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/unpack"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// planCacheLimit is the maximum size of the package cache for plans, which is the default of the manager.
const planCacheLimit = 10 << 30

// LazySource returns packages, and opens the package cache on first use: a plan that reads no content needs
// no cache.
type LazySource struct {
	mu    sync.Mutex
	Flags ContentFlags
	// Indexes predict dependencies of packages that were not resolved before.
	Indexes KindIndexFlag
	// patience bounds the delay that a registry can request; zero selects the default for plans.
	Patience time.Duration
	cache    *cache.Cache
	source   *fetch.Source

	once      sync.Once
	predicted []provide.Source
}

// Open opens the source at the first call, and returns the same source afterwards.
func (s *LazySource) Open(ctx context.Context) (*fetch.Source, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.source != nil {
		return s.source, nil
	}
	registries, err := flags.RegistryFlags{TrustFlags: s.Flags.TrustFlags}.Options(ctx, oci.Limits{}, nil)
	if err != nil {
		return nil, err
	}
	registries.MaxRetryAfter = s.Patience
	if s.cache, err = s.Flags.CacheFlags.Open(planCacheLimit); err != nil {
		return nil, err
	}
	s.source = fetch.NewSource(fetch.Options{Remote: registries, Store: s.cache.Store(), Names: s.cache})
	return s.source, nil
}

// withSource calls a function with the source, which it opens if necessary.
func withSource[T any](ctx context.Context, s *LazySource, call func(*fetch.Source) (T, error)) (out T, err error) {
	source, err := s.Open(ctx)
	if err != nil {
		return out, err
	}
	return call(source)
}

// Named implements planner.Source.
func (s *LazySource) Named(ctx context.Context, name string) (oci.Digest, error) {
	return withSource(ctx, s, func(c *fetch.Source) (oci.Digest, error) { return c.Named(ctx, name) })
}

// Resolve implements planner.Source.
func (s *LazySource) Resolve(ctx context.Context, o fetch.Origin, maxAge time.Duration) (oci.Digest, error) {
	return withSource(ctx, s, func(c *fetch.Source) (oci.Digest, error) { return c.Resolve(ctx, o, maxAge) })
}

// Read implements planner.Source.
func (s *LazySource) Read(ctx context.Context, o fetch.Origin, d oci.Digest, pull bool) (*xpkg.Package, error) {
	return withSource(ctx, s, func(c *fetch.Source) (*xpkg.Package, error) { return c.Read(ctx, o, d, pull) })
}

// Verify implements planner.Source.
func (s *LazySource) Verify(
	ctx context.Context, o fetch.Origin, d oci.Digest, ask bool,
) ([]signature.Verdict, error) {
	return withSource(ctx, s, func(c *fetch.Source) ([]signature.Verdict, error) { return c.Verify(ctx, o, d, ask) })
}

// Tags implements fetch.Lookup.
func (s *LazySource) Tags(ctx context.Context, o fetch.Origin) (fetch.TagList, error) {
	return withSource(ctx, s, func(c *fetch.Source) (fetch.TagList, error) { return c.Tags(ctx, o) })
}

// Describe implements fetch.Lookup.
func (s *LazySource) Describe(ctx context.Context, o fetch.Origin, d oci.Digest) (fetch.Description, error) {
	return withSource(ctx, s, func(c *fetch.Source) (fetch.Description, error) { return c.Describe(ctx, o, d) })
}

// Prove implements fetch.Lookup.
func (s *LazySource) Prove(ctx context.Context, o fetch.Origin, d oci.Digest) (fetch.Description, error) {
	return withSource(ctx, s, func(c *fetch.Source) (fetch.Description, error) { return c.Prove(ctx, o, d) })
}

// Status implements fetch.Lookup.
func (s *LazySource) Status(ctx context.Context, o fetch.Origin, d oci.Digest) (*catalog.VersionStatus, error) {
	return withSource(ctx, s, func(c *fetch.Source) (*catalog.VersionStatus, error) { return c.Status(ctx, o, d) })
}

// RuntimeConfig implements planner.Images.
func (s *LazySource) RuntimeConfig(
	ctx context.Context, o fetch.Origin, d oci.Digest, platform oci.Platform,
) (unpack.RuntimeConfig, error) {
	return withSource(
		ctx, s, func(c *fetch.Source) (unpack.RuntimeConfig, error) { return c.RuntimeConfig(ctx, o, d, platform) },
	)
}

// Close closes the source if it was opened.
func (s *LazySource) Close() error {
	if s.source == nil {
		return nil
	}
	s.source.Close()
	return s.cache.Close()
}
