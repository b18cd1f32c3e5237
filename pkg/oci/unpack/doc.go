// Package unpack writes the root file system of a runtime image to a directory.
//
//	Reference ──Fetch──▶ RuntimeImage + all layers in a store.Store ──RootFS──▶ directory
//	Artifact  ──Find───▶ RuntimeImage, layers not fetched
//
// # Finding the image
//
// [Fetch] stores a runtime image from a registry with all of its layers; [Find] returns
// the runtime image of any [oci.Artifact]. Both verify the manifest and the
// configuration. Fetch fails with [ErrWrongPlatform] if the image is for another platform.
//
// # Unpacking
//
// [RootFS] applies the layers in order, as the OCI image specification ("Applying
// Changesets") defines it, including whiteouts. Each layer is verified as a whole before
// its first entry is read. The directory must be empty. After an error its content is
// incomplete and the caller deletes it.
//
// # Security
//
// Images are untrusted input:
//
//   - No entry is written outside of the directory. Symbolic links are rewritten to
//     stay inside; an absolute link is relative to the root of the image.
//   - Files belong to the user of the process. The setuid and setgid bits, owners and
//     extended attributes are dropped.
//   - Devices fail with [ErrUnsafeImage], except below /dev, where all entries are
//     skipped.
//   - [Limits] bound downloads, unpacked bytes, compression ratio, entries, headers and
//     depth; an image beyond a limit fails with [ErrImageTooLarge].
package unpack
