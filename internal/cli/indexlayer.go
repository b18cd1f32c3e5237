package cli

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

// ErrIndexMismatch is the failure of a package whose index layer says something
// else than its package.yaml.
var ErrIndexMismatch = failure.Register(failure.Code{
	Name: "IndexMismatch", Class: failure.Untrusted,
	Cause: "The package has an index layer that does not say what its package.yaml says. Nothing but inspect reads that layer.",
	Fix:   "Build the package again with xpkg build; do not trust it before you know how this came about.",
})

// The layer with the index of a package: a list of what is in package.yaml, which
// costs a thousandth of it to download (xpkg specification, "Manifests": layers
// with another annotation than "base" are for others than Crossplane).
const (
	indexAnnotation = "xpkg-index"
	indexPath       = ".xpkg/index"
	// maxIndexLayer bounds the layer, packed and unpacked.
	maxIndexLayer = 16 << 20
)

// indexLayer makes the layer for a package.yaml. Reading the stream once more is
// what proves, before it is written, that it reads as it was checked.
func indexLayer(stream []byte, limits format.Limits) (oci.ExtraLayer, error) {
	pkg, err := format.Read(stream, format.ReadOptions{Limits: limits})
	if err != nil {
		return oci.ExtraLayer{}, err
	}
	index, err := format.NewIndex(pkg)
	if err != nil {
		return oci.ExtraLayer{}, err
	}
	return oci.ExtraLayer{Annotation: indexAnnotation, Files: []oci.LayerFile{{Path: indexPath, Data: format.EncodeIndex(index)}}}, nil
}

// findIndexLayer gives the layer of the index, or nothing when there is none or
// more than one.
func findIndexLayer(m oci.Manifest) *oci.Descriptor {
	var found *oci.Descriptor
	for i, l := range m.Layers {
		if l.Annotations[oci.AnnotationKey] != indexAnnotation {
			continue
		}
		if found != nil {
			return nil
		}
		found = &m.Layers[i]
	}
	return found
}

// readIndexLayer reads the index of a layer. That its bytes are those of the digest
// is verified; that they are true is not.
func readIndexLayer(ctx context.Context, a oci.Artifact, layer oci.Descriptor) (_ *format.Index, err error) {
	if layer.Size > maxIndexLayer {
		return nil, ErrIndexMismatch.New(nil, "the index layer has %d bytes and may have %d", layer.Size, maxIndexLayer)
	}
	blob, err := a.Open(ctx, layer)
	if err != nil {
		return nil, err
	}
	defer closing(&err, blob)
	data, err := io.ReadAll(io.LimitReader(blob, layer.Size+1))
	if err != nil {
		return nil, err
	}
	if oci.DigestOf(data) != layer.Digest {
		return nil, oci.ErrDigestMismatch.New(nil, "the index layer is not %s", layer.Digest)
	}
	text, err := untarIndex(data)
	if err != nil {
		return nil, ErrIndexMismatch.New(err, "cannot read the index layer")
	}
	return format.DecodeIndex(text)
}

// untarIndex gives the one file of the layer.
func untarIndex(data []byte) ([]byte, error) {
	plain, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	entries := tar.NewReader(io.LimitReader(plain, 2*maxIndexLayer))
	for {
		entry, err := entries.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil, errors.New("it holds no index")
		case err != nil:
			return nil, err
		case entry.Name != indexPath || entry.Typeflag != tar.TypeReg:
			continue
		case entry.Size > maxIndexLayer:
			return nil, errors.New("the index is too large")
		}
		return io.ReadAll(entries)
	}
}
