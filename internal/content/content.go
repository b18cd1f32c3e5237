// Package content gives the packages that references name: from the store of
// this machine when they are there, and from a registry otherwise.
//
// A package is read by its digest and never by its tag. Its bytes come from the
// store, where they were verified as a whole before anything looked at them.
package content

import (
	"context"

	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/oci"
)

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
// pulled first, if pull says that it may be.
func (s *Source) Read(ctx context.Context, ref oci.Reference, pull bool) (*format.Package, error) {
	manifest, err := s.manifest(ctx, ref, pull)
	if err != nil {
		return nil, err
	}
	stream, err := oci.PackageYAML(ctx, s.store, manifest, s.limits)
	if err != nil {
		return nil, err
	}
	return format.Read(stream, format.ReadOptions{File: ref.String()})
}

// manifest finds the manifest of the package, with its layer in the store.
func (s *Source) manifest(ctx context.Context, ref oci.Reference, pull bool) (oci.Manifest, error) {
	remote := s.remote
	if !pull {
		remote = oci.NewRemote(oci.RemoteOptions{Transport: offline{ref}, Attempts: 1})
	}
	return remote.Fetch(ctx, ref, s.store, oci.FetchOptions{})
}
