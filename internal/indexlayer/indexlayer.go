// Package indexlayer is the small layer of a package that says what is in its
// package.yaml, as xpkg build writes it. Its bytes are those that the manifest names;
// whether they are true, only package.yaml can tell.
package indexlayer

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"

	"github.com/xpkg-dev/xpkg/internal/failure"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/oci"
)

// ErrMismatch is the failure of a package whose index layer says something
// else than its package.yaml.
var ErrMismatch = failure.Register(failure.Code{
	Name: "IndexMismatch", Class: failure.Untrusted,
	Cause: "The package has an index layer that does not say what its package.yaml says. What is installed, package.yaml says.",
	Fix:   "Build the package again with xpkg build; do not trust it before you know how this came about.",
})

// The layer with the index of a package: a list of what is in package.yaml, which
// costs a thousandth of it to download (xpkg specification, "Manifests": layers
// with another annotation than "base" are for others than Crossplane).
const (
	annotation = "xpkg-index"
	path       = ".xpkg/index"
	// maxSize bounds the layer, packed and unpacked.
	maxSize = 16 << 20
)

// Build makes the layer for a package.yaml. Reading the stream once more is
// what proves, before it is written, that it reads as it was checked.
func Build(stream []byte, limits format.Limits) (oci.ExtraLayer, error) {
	pkg, err := format.Read(stream, format.ReadOptions{Limits: limits})
	if err != nil {
		return oci.ExtraLayer{}, err
	}
	index, err := format.NewIndex(pkg)
	if err != nil {
		return oci.ExtraLayer{}, err
	}
	return oci.ExtraLayer{Annotation: annotation, Files: []oci.LayerFile{{Path: path, Data: format.EncodeIndex(index)}}}, nil
}

// Find gives the layer of the index, or nothing when there is none or
// more than one.
func Find(m oci.Manifest) *oci.Descriptor {
	var found *oci.Descriptor
	for i, l := range m.Layers {
		if l.Annotations[oci.AnnotationKey] != annotation {
			continue
		}
		if found != nil {
			return nil
		}
		found = &m.Layers[i]
	}
	return found
}

// Read reads the index of a layer. That its bytes are those of the digest
// is verified; that they are true is not.
func Read(ctx context.Context, a oci.Artifact, layer oci.Descriptor) (_ *format.Index, err error) {
	if layer.Size > maxSize {
		return nil, ErrMismatch.New(nil, "the index layer has %d bytes and may have %d", layer.Size, maxSize)
	}
	blob, err := a.Open(ctx, layer)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, blob.Close()) }()
	data, err := io.ReadAll(io.LimitReader(blob, layer.Size+1))
	if err != nil {
		return nil, err
	}
	if oci.DigestOf(data) != layer.Digest {
		return nil, oci.ErrDigestMismatch.New(nil, "the index layer is not %s", layer.Digest)
	}
	text, err := untar(data)
	if err != nil {
		return nil, ErrMismatch.New(err, "cannot read the index layer")
	}
	return format.DecodeIndex(text)
}

// untar gives the one file of the layer.
func untar(data []byte) ([]byte, error) {
	plain, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	entries := tar.NewReader(io.LimitReader(plain, 2*maxSize))
	for {
		entry, err := entries.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil, errors.New("it holds no index")
		case err != nil:
			return nil, err
		case entry.Name != path || entry.Typeflag != tar.TypeReg:
			continue
		case entry.Size > maxSize:
			return nil, errors.New("the index is too large")
		}
		return io.ReadAll(entries)
	}
}
