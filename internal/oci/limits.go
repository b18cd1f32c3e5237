package oci

import (
	"github.com/xpkg-dev/xpkg/internal/failure"
)

// ErrManifestTooLarge is the failure of a manifest, index or configuration that
// is larger, or has more parts, than the limits allow.
var ErrManifestTooLarge = failure.Register(failure.Code{
	Name: "ManifestTooLarge", Class: failure.Limit,
	Cause: "A manifest has more bytes, layers, entries or annotations than the limits allow.",
	Fix:   "Check that the reference names a package; raise the limit that the message names if it does.",
})

// ErrLayerTooLarge is the failure of a layer, or an image without an annotated
// layer, whose declared size is larger than the limits allow.
var ErrLayerTooLarge = failure.Register(failure.Code{
	Name: "LayerTooLarge", Class: failure.Limit,
	Cause: "The content that would have to be downloaded is larger than the limits allow.",
	Fix:   "Check that the reference names a package and not the image of a program; raise the limit that the message names if it does.",
})

// ErrDecompressionLimit is the failure of a layer that unpacks to more than the
// limits allow.
var ErrDecompressionLimit = failure.Register(failure.Code{
	Name: "DecompressionLimit", Class: failure.Limit,
	Cause: "A layer unpacks to more bytes, or to more bytes for its size, than the limits allow.",
	Fix:   "Do not trust the package unless you know why it is so large; raise the limit that the message names if you do.",
})

// ErrArchiveLimit is the failure of a tar with more entries or longer headers
// than the limits allow.
var ErrArchiveLimit = failure.Register(failure.Code{
	Name: "ArchiveLimit", Class: failure.Limit,
	Cause: "A tar has more entries, or longer headers, than the limits allow.",
	Fix:   "Check that the layer is that of a package; raise the limit that the message names if it is.",
})

// ErrPackageTooLarge is the failure of a package.yaml over the limit.
var ErrPackageTooLarge = failure.Register(failure.Code{
	Name: "PackageTooLarge", Class: failure.Limit,
	Cause: "The file package.yaml is larger than the limit.",
	Fix:   "Split the package, or raise the limit that the message names.",
})

// Limits bound what is read. Sizes are bytes. Reaching a limit is an error that
// names the limit, the value and the flag; nothing is truncated.
type Limits struct {
	// Manifest bounds one manifest, index or configuration (--max-manifest-size).
	// The OCI distribution specification asks registries for 4 MiB at least.
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
	// Image bounds the download of an image without an annotated layer, all
	// layers that have to be looked at together (--max-image-size).
	Image int64
	// Unpacked bounds what a layer unpacks to (--max-unpacked-size).
	Unpacked int64
	// Ratio bounds how many bytes a layer unpacks to for each of its own, once it
	// has given 8 MiB (--max-compression-ratio). The YAML of the largest known
	// providers reaches 15 with gzip and 60 with zstd.
	Ratio int64
	// Entries bounds the entries of a tar (--max-entries).
	Entries int
	// Headers bounds the names and extended headers of a tar, all entries
	// together (--max-header-size).
	Headers int64
	// Package bounds package.yaml (--max-package-size).
	Package int64
}

// DefaultLimits are the limits when nothing else is configured. The largest known
// provider has 98 MiB of YAML in a layer of 7 MiB.
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

// WithDefaults gives l with the default in the place of every limit that is zero.
func (l Limits) WithDefaults() Limits {
	d := DefaultLimits()
	orInt64(&l.Manifest, d.Manifest)
	orInt(&l.Layers, d.Layers)
	orInt(&l.IndexEntries, d.IndexEntries)
	orInt(&l.Annotations, d.Annotations)
	orInt64(&l.Layer, d.Layer)
	orInt64(&l.Image, d.Image)
	orInt64(&l.Unpacked, d.Unpacked)
	orInt64(&l.Ratio, d.Ratio)
	orInt(&l.Entries, d.Entries)
	orInt64(&l.Headers, d.Headers)
	orInt64(&l.Package, d.Package)
	return l
}

func orInt64(v *int64, other int64) {
	if *v == 0 {
		*v = other
	}
}

func orInt(v *int, other int) {
	if *v == 0 {
		*v = other
	}
}
