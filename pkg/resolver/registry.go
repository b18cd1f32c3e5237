package resolver

import (
	"context"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// A Registry provides the versions of packages and their metadata. It must be safe for
// concurrent use; the resolver does not limit the number of concurrent calls.
//
// An error with a code of class NotFound reports that a repository or a version does not
// exist, and an error with a code of package oci for an invalid image reports that the
// version cannot be used; the resolver then selects another version. Any other error ends
// the resolution: otherwise, an unreachable registry would cause a downgrade.
type Registry interface {
	// Location returns the location from which a repository is read, as
	// [oci.Reference.Location]: that of its rewritten name, or its own. Repositories with
	// the same location are one package.
	Location(ctx context.Context, repository oci.Reference) (string, error)
	// Versions returns the tags of a repository. The reference has neither tag nor digest.
	Versions(ctx context.Context, repository oci.Reference) (Versions, error)
	// Metadata returns the metadata of the version with a tag, a digest, or both.
	Metadata(ctx context.Context, version oci.Reference) (Metadata, error)
	// Verify returns the metadata of the content with a digest from its package.yaml, to
	// verify claimed metadata.
	Verify(ctx context.Context, version oci.Reference, digest oci.Digest) (Metadata, error)
	// Status returns the status of a version with a digest, and nil if it has none or if the registry has no statuses. The
	// tags are those of its repository, which show whether there is a status to read.
	Status(ctx context.Context, version oci.Reference, tags []string) (*catalog.Status, error)
}

// Versions holds the tags of a repository, as listed by one location.
type Versions struct {
	// Tags of the repository, each once.
	Tags []string
	// From is the repository that listed the tags: the repository itself, a mirror, or the
	// repository to which it is rewritten.
	From oci.Reference
	// Next lists the tags at the next location, for use if these tags have no solution. It
	// is nil if there is no other location. Lists of several locations are never merged,
	// because no author has published such a set of versions.
	Next func(ctx context.Context) (Versions, error)
}

// Metadata is the metadata of one version.
type Metadata struct {
	// Digest of the content.
	Digest oci.Digest
	Meta   xpkg.Meta
	// Claimed reports whether the metadata comes from the index layer of the package and
	// has not been compared with package.yaml. The resolver verifies the versions that it
	// selects.
	Claimed bool
}
