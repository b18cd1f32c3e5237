// Package oci moves packages between folders of blobs, files and registries,
// and believes nothing on the way.
//
// # Identity
//
// A [Reference] names content in a registry, by tag or by digest. A tag is
// resolved once, by [Remote.Resolve], and from then on the [Digest] is the
// identity: every later step uses it. Bytes are compared with their whole
// digest and their size before anything parses them. [Store] is the place where
// verified bytes are kept; it verifies them again whenever they are read.
//
// # Reading
//
//	Reference ──Resolve──▶ Descriptor ──Fetch──▶ Manifest + base layer in a Store
//	Manifest  ──PackageYAML──▶ the bytes of package.yaml
//
// Which manifest of an index and which layer of a manifest make the package is
// decided here, by the rules of the xpkg specification ("Indexes", "Manifests",
// "Layers"), and not by a client library.
//
// # Writing
//
// [BuildImage] makes an [Image] whose digest depends on its input alone, and
// [NewIndex] joins images of several platforms. Both are an [Artifact]: content
// that starts at one descriptor. An artifact can be pushed, written to an
// archive or a layout, and read back from any of them without a byte of
// difference, so its digest is the same everywhere.
//
// # Limits
//
// Memory is bounded by [Limits] and never by what a registry sends. A limit that
// is reached is an error that names the limit, the value and the flag that
// raises it; nothing is ever cut short.
package oci
