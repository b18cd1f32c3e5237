package oci

import "github.com/xpkg-dev/xpkg/pkg/errcode"

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code {
	return []errcode.Code{
		ErrAmbiguousBaseLayer,
		ErrAmbiguousPlatform,
		ErrArchiveLimit,
		ErrBlobMissing,
		ErrBlobNotFound,
		ErrBrokenLayer,
		ErrCompressionMismatch,
		ErrDecompressionLimit,
		ErrDigestMismatch,
		ErrDuplicateEntry,
		ErrEmptyIndex,
		ErrForeignLayer,
		ErrIndexTooDeep,
		ErrInvalidDigest,
		ErrInvalidManifest,
		ErrInvalidReference,
		ErrLayerTooLarge,
		ErrManifestNotFound,
		ErrManifestTooLarge,
		ErrNoPackageYAML,
		ErrNotAPackage,
		ErrNotATar,
		ErrNotRegularFile,
		ErrPackageTooLarge,
		ErrPlatformNotFound,
		ErrSizeMismatch,
		ErrUnexpectedMediaType,
		ErrUnsupportedDigest,
	}
}
