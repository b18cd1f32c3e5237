// Package content gives the packages that references name: from the store of
// this machine when they are there, and from a registry otherwise.
//
// A package is read by its digest and never by its tag. Its bytes come from the
// store, where they were verified as a whole before anything looked at them. What
// was found in its YAML is kept beside it, so that only the first read of a
// package pays for parsing it.
package content

import (
	"context"
	"time"

	"github.com/xpkg-dev/xpkg/internal/failure"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/format/apiserver"
	"github.com/xpkg-dev/xpkg/internal/oci"
)

// ErrNotCached is the failure of content that may not be pulled and is not in
// the cache.
var ErrNotCached = failure.Register(failure.Code{
	Name: "NotCached", Class: failure.NotFound,
	Cause: "The packagePullPolicy is Never, and the content is not in the package cache.",
	Fix:   "Put the content into the package cache, or use the packagePullPolicy IfNotPresent.",
})

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
	Remote oci.RemoteOptions
	// Store keeps what was fetched.
	Store *oci.Store
	// Names finds content by name; nil means that none has one.
	Names Names
	// Limits bound what is fetched, and FormatLimits what is read.
	Limits       oci.Limits
	FormatLimits format.Limits
	// Now gives the time; the system clock when it is nil.
	Now func() time.Time
}

// Source gives packages. It can be used by many goroutines.
type Source struct {
	opts    Options
	clients *pool
}

// NewSource makes a source. It makes no connection.
func NewSource(o Options) *Source {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Remote.Limits = o.Limits
	return &Source{opts: o, clients: newPool(o.Remote)}
}

// Close ends the connections that are kept for further requests.
func (s *Source) Close() { s.clients.close() }

// Named gives the digest of what was put into the package cache under a name. It
// asks no registry.
func (s *Source) Named(ctx context.Context, name string) (oci.Digest, error) {
	if s.opts.Names == nil {
		return oci.Digest{}, ErrNotCached.New(nil, "there is no package cache in which %q could be", name)
	}
	return s.opts.Names.Named(ctx, name)
}

// Resolve asks which content an origin stands for now. An origin with a digest
// costs nothing. An answer that was given to somebody within maxAge is given
// again; with a maxAge of zero only one that is being waited for.
func (s *Source) Resolve(ctx context.Context, o Origin, maxAge time.Duration) (oci.Digest, error) {
	if !o.Ref.Digest.IsZero() {
		return o.Ref.Digest, nil
	}
	return first(ctx, o, func(p Place) (oci.Digest, error) {
		remote, err := s.clients.get(p)
		if err != nil {
			return oci.Digest{}, err
		}
		d, err := remote.Resolve(ctx, p.Ref)
		return d.Digest, err
	})
}

// Read gives the package with a digest. What the store does not have is pulled
// first, if pull says that it may be; otherwise nothing is dialed.
func (s *Source) Read(ctx context.Context, o Origin, d oci.Digest, pull bool) (*format.Package, error) {
	ref := o.Ref.WithDigest(d)
	if pkg, ok := s.indexed(ctx, ref); ok {
		return pkg, nil
	}
	pkg, err := s.parse(ctx, ref)
	if oci.ErrBlobNotFound.Is(err) {
		if !pull {
			return nil, ErrNotCached.New(nil, "%s is not in the package cache", ref)
		}
		if err := s.fetch(ctx, o, d); err != nil {
			return nil, err
		}
		pkg, err = s.parse(ctx, ref)
	}
	if err != nil {
		return nil, err
	}
	s.keep(ctx, d, pkg)
	return pkg, nil
}

// fetch brings a package into the store from the first place that has it.
func (s *Source) fetch(ctx context.Context, o Origin, d oci.Digest) error {
	_, err := first(ctx, o, func(p Place) (oci.Manifest, error) {
		remote, err := s.clients.get(p)
		if err != nil {
			return oci.Manifest{}, err
		}
		return remote.Fetch(ctx, p.Ref.WithDigest(d), s.opts.Store, oci.FetchOptions{})
	})
	return err
}

// parse reads a package from the YAML in the store and checks all of it, as the
// API server would: what cannot be installed whole is refused before anything of
// it is written (packages guide, "Provider Packages").
func (s *Source) parse(ctx context.Context, ref oci.Reference) (*format.Package, error) {
	store, limits := s.opts.Store, s.opts.Limits
	artifact, err := store.Artifact(ctx, ref.Digest, limits)
	if err != nil {
		return nil, err
	}
	manifest, err := oci.FindManifest(ctx, artifact, oci.Platform{}, limits)
	if err != nil {
		return nil, err
	}
	stream, err := oci.PackageYAML(ctx, store, manifest, limits)
	if err != nil {
		return nil, err
	}
	pkg, err := format.Read(stream, format.ReadOptions{File: ref.String(), Policy: format.PolicyInstall(), Limits: s.opts.FormatLimits})
	if err != nil {
		return nil, err
	}
	findings := format.Check(pkg, format.CheckOptions{Policy: format.PolicyInstall(), CRDs: apiserver.ValidateCRD})
	return pkg, format.Failed(findings)
}
