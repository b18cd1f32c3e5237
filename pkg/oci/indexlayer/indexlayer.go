// Package indexlayer builds and reads the layer with the index of package.yaml, which
// xpkg build adds to packages. The manifest guarantees the bytes of the index; only
// package.yaml proves that the index is correct.
package indexlayer

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/index"
)

// ErrMismatch is the code for a package whose index layer does not match its
// package.yaml.
var ErrMismatch = errcode.Code{
	Name: "IndexMismatch", Class: errcode.Untrusted,
	Cause: "The index layer of the package does not match its package.yaml. Installation uses package.yaml.",
	Fix:   "Build the package again with xpkg build; do not trust it until you know the cause.",
}

// The index layer lists the content of package.yaml in a thousandth of its size (xpkg
// specification, "Manifests": layers with an annotation other than "base" are not for
// Crossplane).
const (
	annotation = "xpkg-index"
	path       = ".xpkg/index"
	// maxSize bounds the layer, packed and unpacked.
	maxSize = 16 << 20
)

// Build returns the layer for a package.yaml. It parses the stream, which proves that the
// stream is valid before the layer is written.
func Build(stream []byte, limits xpkg.Limits) (image.ExtraLayer, error) {
	pkg, err := xpkg.Read(stream, xpkg.ReadOptions{Limits: limits})
	if err != nil {
		return image.ExtraLayer{}, err
	}
	x, err := index.New(pkg)
	if err != nil {
		return image.ExtraLayer{}, err
	}
	return image.ExtraLayer{Annotation: annotation, Files: []image.File{{Path: path, Data: index.Encode(x)}}}, nil
}

// Find returns the index layer, or nil if there is not exactly one.
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

// Read reads the index of a layer. It verifies the digest of the layer, but not that the
// index matches package.yaml.
func Read(ctx context.Context, a oci.Artifact, layer oci.Descriptor) (_ *index.Index, err error) {
	if layer.Size > maxSize {
		return nil, ErrMismatch.New(nil, "the index layer has %d bytes, at most %d are allowed", layer.Size, maxSize)
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
	return index.Decode(text)
}

// untar returns the only file of the layer.
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
			return nil, errors.New("it contains no index")
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
