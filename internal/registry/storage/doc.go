// Package storage stores the content of a registry in a folder. Each repository is an OCI image layout, root/NAME, with
// the list of its manifests (index.json) and its blobs:
//
//	upload ──▶ _uploads/upload.N ──verify──▶ blobs/sha256/HEX      on the disk before it has its name
//	push ────▶ blobs/sha256/HEX ──▶ index.json.N ──▶ index.json    replaced as a whole
//	collection: index.json ──mark──▶ manifests ──▶ blobs; the rest is removed after a grace period
//
// # Promises
//
// A change that was acknowledged is on the disk, and one that was not has either happened or not: the list of manifests
// is never half written. Content is verified against its digest when it is written, and when it is read first. Damaged
// content is not served, a push replaces it, and a repository with a damaged manifest keeps everything: only that
// manifest names its layers. A repository with a damaged list is refused, and its content stays. A fault of the system,
// such as a lack of descriptors, is no damage.
//
// One process uses a folder. The list is read again when its file changes, so that an operator can restore it.
//
// # Layout
//
// A manifest has an entry of the list for each tag, or one without a tag. The entry with the annotation
// org.olareg.referrer.subject is an index of the referrers of a subject. The manifests in an index need no entry.
// Folders of releases that stored content with olareg have the same layout.
package storage
