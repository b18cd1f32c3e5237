package store

import (
	"context"
	"errors"
	"io"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// AddPackage stores the content that is necessary to read the package of an artifact, as
// [remote.Client.Fetch] does with a registry. It returns the manifest of the package and
// the digests of that content, the root first.
func (s *Store) AddPackage(ctx context.Context, a oci.Artifact, limits oci.Limits) (oci.Manifest, []oci.Digest, error) {
	limits = limits.WithDefaults()
	in := &addition{Artifact: a, store: s}
	m, err := oci.FindManifest(ctx, in, oci.Platform{}, limits)
	if err != nil {
		return oci.Manifest{}, nil, err
	}
	return m, in.parts, oci.OpenPackageLayers(ctx, in, m, limits)
}

// addition is an artifact that is read through a store.
type addition struct {
	oci.Artifact
	store *Store
	parts []oci.Digest
}

// Open implements [oci.Artifact].
func (a *addition) Open(ctx context.Context, d oci.Descriptor) (io.ReadCloser, error) {
	a.parts = append(a.parts, d.Digest)
	if r, err := a.store.Open(ctx, d.Digest); err == nil {
		return r, nil
	}
	from, err := a.Artifact.Open(ctx, d)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(a.store.Put(ctx, d.Digest, d.Size, from), from.Close()); err != nil {
		return nil, err
	}
	return a.store.Open(ctx, d.Digest)
}

// OpenVerified implements [oci.VerifiedArtifact]: the store verifies each blob that
// it opens.
func (a *addition) OpenVerified(ctx context.Context, d oci.Descriptor) (io.ReadCloser, error) {
	return a.Open(ctx, d)
}
