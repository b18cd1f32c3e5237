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

// Source gives packages.
type Source struct {
	remote *oci.Remote
	store  *oci.Store
	limits oci.Limits
}

// NewSource makes a source of a registry client and a store.
func NewSource(remote *oci.Remote, store *oci.Store) *Source {
	return &Source{remote: remote, store: store}
}

// Resolve asks the registry which content a reference stands for now. A
// reference with a digest costs nothing.
func (s *Source) Resolve(ctx context.Context, ref oci.Reference) (oci.Digest, error) {
	d, err := s.remote.Resolve(ctx, ref)
	return d.Digest, err
}

// Read gives the package with the digest of ref. What the store does not have is
// pulled first, if pull says that it may be; otherwise nothing is dialed.
func (s *Source) Read(ctx context.Context, ref oci.Reference, pull bool) (*format.Package, error) {
	if pkg, ok := s.indexed(ctx, ref); ok {
		return pkg, nil
	}
	pkg, err := s.parse(ctx, ref)
	if oci.ErrBlobNotFound.Is(err) {
		if !pull {
			return nil, ErrNotCached.New(nil, "%s is not in the package cache", ref)
		}
		if _, err := s.remote.Fetch(ctx, ref, s.store, oci.FetchOptions{}); err != nil {
			return nil, err
		}
		pkg, err = s.parse(ctx, ref)
	}
	if err != nil {
		return nil, err
	}
	s.keep(ctx, ref.Digest, pkg)
	return pkg, nil
}

// parse reads a package from the YAML in the store and checks all of it, as the
// API server would: what cannot be installed whole is refused before anything of
// it is written (packages guide, "Provider Packages").
func (s *Source) parse(ctx context.Context, ref oci.Reference) (*format.Package, error) {
	artifact, err := s.store.Artifact(ctx, ref.Digest, s.limits)
	if err != nil {
		return nil, err
	}
	manifest, err := oci.FindManifest(ctx, artifact, oci.Platform{}, s.limits)
	if err != nil {
		return nil, err
	}
	stream, err := oci.PackageYAML(ctx, s.store, manifest, s.limits)
	if err != nil {
		return nil, err
	}
	pkg, err := format.Read(stream, format.ReadOptions{File: ref.String(), Policy: format.PolicyInstall()})
	if err != nil {
		return nil, err
	}
	findings := format.Check(pkg, format.CheckOptions{Policy: format.PolicyInstall(), CRDs: apiserver.ValidateCRD})
	return pkg, format.Failed(findings)
}
