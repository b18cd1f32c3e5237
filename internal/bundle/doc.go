// Package bundle writes packages with everything that belongs to them into one file, and copies the content of such a
// file to a registry.
//
// A bundle is an uncompressed tar with an OCI layout. The files are in this order, each with a header of 512 bytes, and
// with zeros up to a multiple of 512 bytes:
//
//	oci-layout
//	index.json      the manifest of the bundle, and an entry for each artifact under its full name
//	blobs/sha256/…  the manifest of the bundle
//	blobs/sha256/…  its config: the digests and sizes of all blobs below, in their order
//	blobs/sha256/…  its layers: the lock file, and ImageConfigs if there are any
//	blobs/sha256/…  all manifests and indexes
//	blobs/sha256/…  all configurations and layers
//
// The first files determine the offset and the digest of everything that follows, so that a bundle has exactly one
// form: [Save] writes the parts of a file in any order and continues with those that are wrong, and [Open] refuses any
// other form. The same content has the same bytes.
//
// An entry of index.json has its name, REPOSITORY:TAG or REPOSITORY@DIGEST, in the annotation
// org.opencontainers.image.ref.name. The artifacts that belong to another one follow it. A bundle for some platforms
// has the whole indexes, with their digests, and lacks the manifests of other platforms. A delta lacks the blobs of
// other bundles, and its config lists them; it has all manifests.
package bundle
