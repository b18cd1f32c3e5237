package main

import (
	"context"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// registry reads packages from registries into a store, and implements resolver.Registry.
type registry struct {
	client *remote.Client
	store  *store.Store
}

var _ resolver.Registry = registry{}

// read returns the package at a reference. Its whole content is verified before it is parsed.
func (r registry) read(ctx context.Context, ref oci.Reference) (*xpkg.Package, oci.Digest, error) {
	d, err := r.client.Resolve(ctx, ref)
	if err != nil {
		return nil, oci.Digest{}, err
	}
	m, err := r.client.Fetch(ctx, ref.WithDigest(d.Digest), r.store, remote.FetchOptions{})
	if err != nil {
		return nil, oci.Digest{}, err
	}
	stream, err := r.store.PackageYAML(ctx, m, oci.Limits{})
	if err != nil {
		return nil, oci.Digest{}, err
	}
	pkg, err := xpkg.Read(stream, xpkg.ReadOptions{})
	return pkg, d.Digest, err
}

// Location implements resolver.Registry.
func (r registry) Location(_ context.Context, repository oci.Reference) (string, error) {
	return repository.Name(), nil
}

// Versions implements resolver.Registry.
func (r registry) Versions(ctx context.Context, repository oci.Reference) (resolver.Versions, error) {
	tags, err := r.client.Tags(ctx, repository)
	return resolver.Versions{Tags: tags, From: repository}, err
}

// Metadata implements resolver.Registry.
func (r registry) Metadata(ctx context.Context, version oci.Reference) (resolver.Metadata, error) {
	pkg, digest, err := r.read(ctx, version)
	if err != nil {
		return resolver.Metadata{}, err
	}
	return resolver.Metadata{Digest: digest, Meta: pkg.Meta}, nil
}

// Verify implements resolver.Registry. Metadata does not read claims.
func (r registry) Verify(ctx context.Context, version oci.Reference, _ oci.Digest) (resolver.Metadata, error) {
	return r.Metadata(ctx, version)
}

// Status implements resolver.Registry. The example selects yanked versions, too.
func (r registry) Status(context.Context, oci.Reference, []string) (*catalog.Status, error) {
	return nil, nil
}
