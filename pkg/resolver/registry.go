package resolver

import (
	"context"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// A Registry provides the versions of packages and their metadata. It must be safe for
// concurrent use; the resolver makes as many calls at the same time as it can.
//
// An error with a code of class NotFound reports that a repository or a version does not
// exist, and an error with a code of package oci for an invalid image reports that the
// version cannot be used; the resolver then selects another version. Any other error ends
// the resolution: otherwise, a registry that cannot be reached would cause a downgrade.
type Registry interface {
	// Location returns the name of the repository that a repository is read from, if it is
	// rewritten, and otherwise its own name. Repositories with the same location are one
	// package.
	Location(ctx context.Context, repository oci.Reference) (string, error)
	// Versions lists the tags of a repository. The reference has neither tag nor digest.
	Versions(ctx context.Context, repository oci.Reference) (Versions, error)
	// Metadata returns the metadata of the version with a tag, a digest, or both.
	Metadata(ctx context.Context, version oci.Reference) (Metadata, error)
	// Verify returns the metadata of the content with a digest from its package.yaml, for
	// metadata that was claimed.
	Verify(ctx context.Context, version oci.Reference, digest oci.Digest) (Metadata, error)
}

// Versions are the tags of a repository, as one place lists them.
type Versions struct {
	// Tags of the repository, each once.
	Tags []string
	// From is the repository that was listed: the repository itself, a mirror of it, or
	// the repository to which it is rewritten.
	From oci.Reference
	// Next lists the tags at the place to ask next if these tags have no solution. It is
	// nil if there is no other place. Lists of several places are never merged: the
	// result would be a set of versions that no author has published.
	Next func(ctx context.Context) (Versions, error)
}

// Metadata is the metadata of one version.
type Metadata struct {
	// Digest of the content.
	Digest oci.Digest
	Meta   xpkg.Meta
	// Claimed reports that the metadata was read from an index that came with the package,
	// which only package.yaml proves. The resolver verifies the versions that it selects.
	Claimed bool
}
