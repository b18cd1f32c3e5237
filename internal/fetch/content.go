// Package fetch returns the packages of references: from the local store if it contains them, otherwise from a
// registry.
//
// A package is read by its digest and never by its tag. Its bytes come from the store, where they were verified as a
// whole before any of them is parsed. The result of parsing is stored beside them, so only the first read of a
// package parses YAML, and later reads hold no objects in memory.
package fetch

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/xpkg-dev/xpkg/internal/keyedmutex"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// ErrNotCached is the code for content that must not be pulled and is not in the cache.
var ErrNotCached = errcode.Code{
	Name: "NotCached", Class: errcode.NotFound,
	Cause: "The packagePullPolicy is Never, and the content is not in the package cache.",
	Fix:   "Add the content to the package cache, or use the packagePullPolicy IfNotPresent.",
}

// Names finds packages that were added to the package cache by hand.
type Names interface {
	// Named returns the digest of the package with a name (packages guide, "Pre-Populating the Package Cache").
	Named(ctx context.Context, name string) (oci.Digest, error)
}

// Options configures a source.
type Options struct {
	// Remote configures access to registries for origins without settings: settings of hosts, and the credentials of
	// this machine.
	Remote remote.Options
	// Store contains the fetched content.
	Store *store.Store
	// Names finds content by name; nil means that none has one.
	Names Names
	// Limits bounds fetched content, and FormatLimits bounds parsed content.
	Limits       oci.Limits
	FormatLimits xpkg.Limits
	// ParseBytes bounds the YAML of the packages that are parsed at the same time, in bytes; zero means 64
	// MiB. A larger package is parsed alone. Parsing takes about three times that.
	ParseBytes int64
	// PartsFrom is the size of the YAML in bytes from which a package is parsed in parts, while it is decompressed; zero
	// means 16 MiB. A smaller package is parsed as a whole.
	PartsFrom int64
	// Clients bounds the number of cached registry clients; zero means 64.
	Clients int
	// Now returns the time; nil means the system clock.
	Now func() time.Time
}

// Source returns packages. It is safe for concurrent use.
type Source struct {
	opts     Options
	clients  *pool
	answers  *resolveCache
	verdicts verdicts
	memory   *semaphore.Weighted
	parsing  keyedmutex.Mutex[oci.Digest]
	// describing serializes the first description of content, and noting the records of its origins.
	describing keyedmutex.Mutex[oci.Digest]
	noting     keyedmutex.Mutex[oci.Digest]
	// writes counts background writes.
	writes sync.WaitGroup
}

// NewSource returns a source. It opens no connection.
func NewSource(o Options) *Source {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.ParseBytes == 0 {
		o.ParseBytes = 64 << 20
	}
	if o.PartsFrom == 0 {
		o.PartsFrom = partsMemory
	}
	if o.Clients == 0 {
		o.Clients = 64
	}
	return &Source{
		opts: o, clients: newPool(o), answers: newAnswers(o.Now), memory: semaphore.NewWeighted(o.ParseBytes),
	}
}

// Close closes idle connections and waits for pending writes.
func (s *Source) Close() {
	s.writes.Wait()
	s.clients.close()
}

// Named returns the digest of the package with a name in the package cache. It accesses no registry.
func (s *Source) Named(ctx context.Context, name string) (oci.Digest, error) {
	if s.opts.Names == nil {
		return oci.Digest{}, ErrNotCached.New(nil, "cannot look up %q without a package cache", name)
	}
	return s.opts.Names.Named(ctx, name)
}

// Resolve returns the digest to which an origin refers now. An origin with a digest requires no request. An
// answer to the same question, with the same credentials, is reused if it is not older than maxAge; with a
// maxAge of zero, only a pending request is shared. An error is shared for that time, and for at most five
// seconds. [remote.RetryAt] returns the time at which a retry can succeed.
func (s *Source) Resolve(ctx context.Context, o Origin, maxAge time.Duration) (oci.Digest, error) {
	if !o.Ref.Digest.IsZero() {
		return o.Ref.Digest, nil
	}
	return first(ctx, o, func(p Endpoint) (oci.Digest, error) {
		c, err := s.clients.get(ctx, p)
		if err != nil {
			return oci.Digest{}, err
		}
		return s.answers.get(ctx, resolveKey{c.key, p.Ref.String()}, maxAge, func(ctx context.Context) (oci.Digest, error) {
			d, err := c.remote.Resolve(ctx, p.Ref)
			return d.Digest, err
		})
	})
}

// Read returns the package with a digest. Missing content is pulled first if pull is true; otherwise no registry is
// accessed. Content that is evicted or found to be damaged during the read is pulled once more. Read fails before it
// pulls anything if the content lacks signatures that the origin requires.
func (s *Source) Read(ctx context.Context, o Origin, d oci.Digest, pull bool) (*xpkg.Package, error) {
	if _, err := s.Verify(ctx, o, d, pull); err != nil {
		return nil, err
	}
	const attempts = 3
	for attempt := 1; ; attempt++ {
		pkg, err := s.read(ctx, o, d)
		if !absent(err) {
			return pkg, err
		}
		if !pull {
			return nil, ErrNotCached.New(nil, "%s is not in the package cache", o.at(d))
		}
		if attempt == attempts {
			return nil, err
		}
		if err := s.fetch(ctx, o, d); err != nil {
			return nil, err
		}
	}
}

// absent reports whether the store lacks a part of a package. The store removes damaged content, which is absent from
// then on.
func absent(err error) bool {
	return errors.Is(err, oci.ErrBlobNotFound) || errors.Is(err, oci.ErrDigestMismatch)
}

// fetch stores a package from the first location that has it, and records its origin.
func (s *Source) fetch(ctx context.Context, o Origin, d oci.Digest) error {
	_, err := first(ctx, o, func(p Endpoint) (oci.Manifest, error) {
		c, err := s.clients.get(ctx, p)
		if err != nil {
			return oci.Manifest{}, err
		}
		return c.remote.Fetch(ctx, p.Ref.WithDigest(d), s.opts.Store, remote.FetchOptions{})
	})
	if err == nil {
		s.noteOrigin(ctx, o.Ref, d)
	}
	return err
}
