package oci

import (
	"context"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrIndexTooDeep is the code for indexes that are nested too deeply.
var ErrIndexTooDeep = errcode.Code{
	Name: "IndexTooDeep", Class: errcode.Invalid,
	Cause: "The indexes of an image are nested too deeply.",
	Fix:   "Publish the package with one index over its images.",
}

// FindImage returns the image manifest of an artifact for a platform: its descriptor, its
// verified bytes and the parsed document. It follows the rules of [Document.Choose] from
// the root, and opens no other content. It fails with ErrIndexTooDeep if there are more
// than two levels of indexes.
func FindImage(
	ctx context.Context, a Artifact, platform Platform, limits Limits,
) (Descriptor, []byte, *Document, error) {
	limits = limits.WithDefaults()
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
	return Descriptor{}, nil, nil,
		ErrIndexTooDeep.New(nil, "%s has more than %d indexes above its images", a.Root().Digest.Short(), maxIndexDepth)
}

// FindManifest returns the manifest of the package in an artifact, for a platform. It
// fails with ErrNotAPackage, ErrAmbiguousBaseLayer or ErrForeignLayer if the image cannot
// be a package.
func FindManifest(ctx context.Context, a Artifact, platform Platform, limits Limits) (Manifest, error) {
	limits = limits.WithDefaults()
	desc, raw, doc, err := FindImage(ctx, a, platform, limits)
	if err != nil {
		return Manifest{}, err
	}
	m, err := NewManifest(raw, doc)
	if err != nil {
		return Manifest{}, err
	}
	m.Root, m.Platform = a.Root().Digest, desc.Platform
	return m, nil
}
