// Package oci reads Crossplane packages from registries, files and directories, and
// copies them between these places. It verifies all content before use.
//
// # Identity
//
// A [Reference] names content in a registry, by tag or by digest. A tag is resolved
// once, by [remote.Client.Resolve]; from then on the [Digest] is the identity of the
// content in every later step. The whole digest and the size of content are verified
// before the content is parsed. A [store.Store] keeps verified content and verifies it
// again on each read.
//
// # Reading
//
//	Reference ──Resolve──▶ Descriptor ──Fetch──▶ Manifest + base layer in a Store
//	Manifest  ──PackageYAML──▶ the bytes of package.yaml
//
// This package chooses the manifest of an index and the layer of a manifest by the
// rules of the xpkg specification ("Indexes", "Manifests", "Layers"). It does not
// depend on the choice of a client library.
//
// # Writing
//
// [image.Build] returns an [image.Image] whose digest depends only on its input, and
// [image.NewIndex] joins images of several platforms. Both are an [Artifact]: content
// below one root descriptor. An artifact can be pushed, or written to an archive or an
// OCI layout. Each copy keeps every byte, so the digest is the same everywhere.
//
// # Limits
//
// [Limits] bound the memory, whatever a registry sends. Content beyond a limit is an
// error that names the limit, the value and the flag that raises it. Content is never
// truncated.
package oci
