package oci

import (
	"cmp"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrManifestTooLarge is the code for a manifest, index or configuration that
// is larger, or has more parts, than the limits allow.
var ErrManifestTooLarge = errcode.Code{
	Name: "ManifestTooLarge", Class: errcode.Limit,
	Cause: "A manifest has more bytes, layers, entries or annotations than the limits allow.",
	Fix:   "Check that the reference names a package; if it does, raise the limit in the message.",
}

// ErrLayerTooLarge is the code for a layer, or an image without an annotated
// layer, whose declared size is larger than the limits allow.
var ErrLayerTooLarge = errcode.Code{
	Name: "LayerTooLarge", Class: errcode.Limit,
	Cause: "The required download is larger than the limits allow.",
	Fix:   "Check that the reference names a package and not a runtime image; if it does, raise the limit in the message.",
}

// ErrDecompressionLimit is the code for a layer that unpacks to more than the
// limits allow.
var ErrDecompressionLimit = errcode.Code{
	Name: "DecompressionLimit", Class: errcode.Limit,
	Cause: "The unpacked size or the compression ratio of a layer exceeds the limits.",
	Fix:   "Do not trust the package unless you know why it is so large; if you do, raise the limit in the message.",
}

// ErrArchiveLimit is the code for a tar with more entries or longer headers
// than the limits allow.
var ErrArchiveLimit = errcode.Code{
	Name: "ArchiveLimit", Class: errcode.Limit,
	Cause: "A tar has more entries, or longer headers, than the limits allow.",
	Fix:   "Check that the layer belongs to a package; if it does, raise the limit in the message.",
}

// ErrPackageTooLarge is the code for a package.yaml over the limit.
var ErrPackageTooLarge = errcode.Code{
	Name: "PackageTooLarge", Class: errcode.Limit,
	Cause: "The file package.yaml is larger than the limit.",
	Fix:   "Split the package, or raise the limit in the message.",
}

// Limits bounds the content that is read. Sizes are in bytes. Content beyond a limit is
// an error that names the limit, the value and the flag; content is never truncated.
type Limits struct {
	// Manifest bounds one manifest, index or configuration (--max-manifest-size). The OCI
	// distribution specification requires registries to accept 4 MiB.
	Manifest int64
	// Layers bounds the layers of a manifest (--max-layers).
	Layers int
	// IndexEntries bounds the manifests of an index (--max-index-entries).
	IndexEntries int
	// Annotations bounds the annotations of a manifest, all descriptors together
	// (--max-annotations).
	Annotations int
	// Layer bounds the download of the annotated layer (--max-layer-size).
	Layer int64
	// Image bounds the download of an image without an annotated layer: the sum of all
	// layers that are searched (--max-image-size).
	Image int64
	// Unpacked bounds the unpacked size of a layer (--max-unpacked-size).
	Unpacked int64
	// Ratio bounds the ratio of the unpacked to the packed size of a layer, beyond the
	// first 8 MiB (--max-compression-ratio). The largest known providers reach 15 with
	// gzip and 60 with zstd.
	Ratio int64
	// Entries bounds the entries of a tar (--max-entries).
	Entries int
	// Headers bounds the names and extended headers of a tar, all entries
	// together (--max-header-size).
	Headers int64
	// Package bounds package.yaml (--max-package-size).
	Package int64
}

// DefaultLimits returns the default limits. The largest known provider has 98 MiB of YAML
// in a layer of 7 MiB.
func DefaultLimits() Limits {
	return Limits{
		Manifest:     4 << 20,
		Layers:       128,
		IndexEntries: 256,
		Annotations:  4096,
		Layer:        64 << 20,
		Image:        128 << 20,
		Unpacked:     1 << 30,
		Ratio:        200,
		Entries:      50_000,
		Headers:      16 << 20,
		Package:      200 << 20,
	}
}

// WithDefaults returns l with the default for every limit that is zero.
func (l Limits) WithDefaults() Limits {
	d := DefaultLimits()
	l.Manifest = cmp.Or(l.Manifest, d.Manifest)
	l.Layers = cmp.Or(l.Layers, d.Layers)
	l.IndexEntries = cmp.Or(l.IndexEntries, d.IndexEntries)
	l.Annotations = cmp.Or(l.Annotations, d.Annotations)
	l.Layer = cmp.Or(l.Layer, d.Layer)
	l.Image = cmp.Or(l.Image, d.Image)
	l.Unpacked = cmp.Or(l.Unpacked, d.Unpacked)
	l.Ratio = cmp.Or(l.Ratio, d.Ratio)
	l.Entries = cmp.Or(l.Entries, d.Entries)
	l.Headers = cmp.Or(l.Headers, d.Headers)
	l.Package = cmp.Or(l.Package, d.Package)
	return l
}
