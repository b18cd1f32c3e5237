package oci

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/xpkg-dev/xpkg/internal/failure"
)

// ErrIndexTooDeep is the failure of indexes within indexes.
var ErrIndexTooDeep = failure.Register(failure.Code{
	Name: "IndexTooDeep", Class: failure.Invalid,
	Cause: "An index refers to an index that refers to another one.",
	Fix:   "Publish the package with one index over its images.",
})

// chooseImage follows the reading rules from the root of an artifact to the
// manifest of the package. What the rules do not choose is not opened.
func chooseImage(ctx context.Context, a Artifact, platform Platform, limits Limits) (Descriptor, []byte, *Document, error) {
	desc := a.Root()
	for range maxIndexDepth + 1 {
		raw, doc, err := ReadDocument(ctx, a, desc, limits)
		if err != nil {
			return Descriptor{}, nil, nil, err
		}
		if !doc.IsIndex() {
			return desc, raw, doc, nil
		}
		if desc, err = doc.Choose(platform); err != nil {
			return Descriptor{}, nil, nil, err
		}
	}
	return Descriptor{}, nil, nil, ErrIndexTooDeep.New(nil, "%s has more than %d indexes above its images", a.Root().Digest.Short(), maxIndexDepth)
}

// FindManifest gives the manifest of the package in an artifact.
func FindManifest(ctx context.Context, a Artifact, platform Platform, limits Limits) (Manifest, error) {
	limits = limits.WithDefaults()
	desc, raw, doc, err := chooseImage(ctx, a, platform, limits)
	if err != nil {
		return Manifest{}, err
	}
	m, err := newManifest(raw, doc)
	if err != nil {
		return Manifest{}, err
	}
	m.Root, m.Platform = a.Root().Digest, desc.Platform
	return m, nil
}

// ReadPackageYAML gives the stream of the package in an artifact that is at hand,
// such as an archive, by the rules of [PackageYAML]. Each layer is held in memory
// and verified before it is unpacked.
func ReadPackageYAML(ctx context.Context, a Artifact, m Manifest, limits Limits) ([]byte, error) {
	return packageYAML(ctx, artifactBlobs{a}, m, limits.WithDefaults())
}

// ReadPackageYAMLWithin is ReadPackageYAML for a caller that bounds the memory of
// several such calls, as [PackageYAMLWithin] is.
func ReadPackageYAMLWithin(ctx context.Context, a Artifact, m Manifest, limits Limits, room func(bytes int64) error) ([]byte, error) {
	return packageYAML(ctx, boundedBlobs{artifactBlobs{a}, room}, m, limits.WithDefaults())
}

// artifactBlobs verifies content before it gives it out.
type artifactBlobs struct{ Artifact }

func (a artifactBlobs) open(ctx context.Context, d Descriptor) (_ io.ReadCloser, err error) {
	r, err := a.Open(ctx, d)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	data, err := readVerified(contextReader{ctx, r}, d)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

// artifactSource opens content of another artifact.
func artifactSource(a Artifact, d Descriptor) source {
	return func(ctx context.Context) (io.ReadCloser, error) { return a.Open(ctx, d) }
}
