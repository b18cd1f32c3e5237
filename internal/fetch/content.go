// Package fetch gives the packages that references name: from the store of
// this machine when they are there, and from a registry otherwise.
//
// A package is read by its digest and never by its tag. Its bytes come from the
// store, where they were verified as a whole before anything looked at them. What
// was found in its YAML is kept beside it, so that only the first read of a
// package pays for parsing it, and none after that holds its objects in memory.
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

// ErrNotCached is the failure of content that may not be pulled and is not in
// the cache.
var ErrNotCached = errcode.Code{
	Name: "NotCached", Class: errcode.NotFound,
	Cause: "The packagePullPolicy is Never, and the content is not in the package cache.",
	Fix:   "Put the content into the package cache, or use the packagePullPolicy IfNotPresent.",
}

// Names finds what was put into the package cache by hand.
type Names interface {
	// Named gives the digest of the content with a name (packages guide,
	// "Pre-Populating the Package Cache").
	Named(ctx context.Context, name string) (oci.Digest, error)
}

// Options make a source.
type Options struct {
	// Remote is how registries are reached when an origin says nothing else: the
	// settings of hosts, and the credentials of this machine.
	Remote remote.Options
	// Store keeps what was fetched.
	Store *store.Store
	// Names finds content by name; nil means that none has one.
	Names Names
	// Limits bound what is fetched, and FormatLimits what is read.
	Limits       oci.Limits
	FormatLimits xpkg.Limits
	// ParseBytes bounds the YAML of the packages that are parsed at the same time,
	// in bytes; 64 MiB when it is zero. A larger package is parsed alone. Parsing
	// takes about three times that.
	ParseBytes int64
	// Clients bounds how many clients of registries are kept; 64 when it is zero.
	Clients int
	// Now gives the time; the system clock when it is nil.
	Now func() time.Time
}

// Source gives packages. It can be used by many goroutines.
type Source struct {
	opts    Options
	clients *pool
	answers *answers
	memory  *semaphore.Weighted
	parsing keyedmutex.Mutex[oci.Digest]
	// describing is for content that is described the first time.
	describing keyedmutex.Mutex[oci.Digest]
	// writes are those that nobody waits for.
	writes sync.WaitGroup
}

// NewSource makes a source. It makes no connection.
func NewSource(o Options) *Source {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.ParseBytes == 0 {
		o.ParseBytes = 64 << 20
	}
	if o.Clients == 0 {
		o.Clients = 64
	}
	return &Source{
		opts: o, clients: newPool(o), answers: newAnswers(o.Now), memory: semaphore.NewWeighted(o.ParseBytes),
	}
}

// Close ends the connections that are kept for further requests, and waits until what
// was read is written.
func (s *Source) Close() {
	s.writes.Wait()
	s.clients.close()
}

// Named gives the digest of what was put into the package cache under a name. It
// asks no registry.
func (s *Source) Named(ctx context.Context, name string) (oci.Digest, error) {
	if s.opts.Names == nil {
		return oci.Digest{}, ErrNotCached.New(nil, "there is no package cache in which %q could be", name)
	}
	return s.opts.Names.Named(ctx, name)
}

// Resolve asks which content an origin stands for now. An origin with a digest
// costs nothing. An answer to the same question, with the same credentials, that
// is not older than maxAge is as good; with a maxAge of zero only one that is
// being waited for already. A failure is shared for as long as that, and for five
// seconds at most. [remote.RetryAt] tells when a failure may be over.
func (s *Source) Resolve(ctx context.Context, o Origin, maxAge time.Duration) (oci.Digest, error) {
	if !o.Ref.Digest.IsZero() {
		return o.Ref.Digest, nil
	}
	return first(ctx, o, func(p Place) (oci.Digest, error) {
		c, err := s.clients.get(ctx, p)
		if err != nil {
			return oci.Digest{}, err
		}
		return s.answers.get(ctx, question{c.key, p.Ref.String()}, maxAge, func(ctx context.Context) (oci.Digest, error) {
			d, err := c.remote.Resolve(ctx, p.Ref)
			return d.Digest, err
		})
	})
}

// Read gives the package with a digest. What the store does not have is pulled
// first, if pull says that it may be; otherwise nothing is dialed. Content that is
// evicted or found damaged meanwhile is pulled once more.
func (s *Source) Read(ctx context.Context, o Origin, d oci.Digest, pull bool) (*xpkg.Package, error) {
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

// absent says that the store does not have all of a package. What it finds to be
// damaged it puts aside, and does not have from then on.
func absent(err error) bool {
	return errors.Is(err, oci.ErrBlobNotFound) || errors.Is(err, oci.ErrDigestMismatch)
}

// fetch brings a package into the store from the first place that has it.
func (s *Source) fetch(ctx context.Context, o Origin, d oci.Digest) error {
	_, err := first(ctx, o, func(p Place) (oci.Manifest, error) {
		c, err := s.clients.get(ctx, p)
		if err != nil {
			return oci.Manifest{}, err
		}
		return c.remote.Fetch(ctx, p.Ref.WithDigest(d), s.opts.Store, remote.FetchOptions{})
	})
	return err
}
