// Package assembly builds artifacts from parts: bytes in memory, functions that open
// content, and other artifacts.
package assembly

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Source opens content. It can be called any number of times.
type Source func(ctx context.Context) (io.ReadCloser, error)

// BytesSource returns a source of data.
func BytesSource(data []byte) Source {
	return func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(data)), nil
	}
}

// ArtifactSource returns a source of content of another artifact.
func ArtifactSource(a oci.Artifact, d oci.Descriptor) Source {
	return func(ctx context.Context) (io.ReadCloser, error) { return a.Open(ctx, d) }
}

// Assembly is an artifact of sources, and of other artifacts that provide the remaining
// content. The zero value is empty.
type Assembly struct {
	// Desc is the descriptor of the root.
	Desc oci.Descriptor
	// Sources maps digests to sources.
	Sources map[oci.Digest]Source
	// Parts are searched in order for content that has no source.
	Parts []oci.Artifact
}

// Root implements [oci.Artifact].
func (a *Assembly) Root() oci.Descriptor { return a.Desc }

// Open implements [oci.Artifact]. It fails with ErrBlobNotFound when no source and no
// part has the content.
func (a *Assembly) Open(ctx context.Context, d oci.Descriptor) (io.ReadCloser, error) {
	if open, ok := a.Sources[d.Digest]; ok {
		return open(ctx)
	}
	for _, part := range a.Parts {
		if r, err := part.Open(ctx, d); !isMissing(err) {
			return r, err
		}
	}
	return nil, oci.ErrBlobNotFound.New(nil, "%s is not part of %s", d.Digest, a.Desc.Digest.Short())
}

// Add adds a source.
func (a *Assembly) Add(d oci.Digest, s Source) {
	if a.Sources == nil {
		a.Sources = map[oci.Digest]Source{}
	}
	a.Sources[d] = s
}

// isMissing reports whether err means that an artifact (in memory, in a store or in a
// registry) does not have the content.
func isMissing(err error) bool {
	return errors.Is(err, oci.ErrBlobNotFound) || errors.Is(err, oci.ErrBlobMissing) ||
		errors.Is(err, oci.ErrManifestNotFound)
}
