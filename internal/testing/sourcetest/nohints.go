package sourcetest

import (
	"context"

	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/signature"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// NoHints is the part of a [fetch.Lookup] that predicts nothing, for lookups of tests.
type NoHints struct{}

// Dependencies implements [fetch.Lookup].
func (NoHints) Dependencies(context.Context, string, string) []dependency.Dependency { return nil }

// Remember implements [fetch.Lookup].
func (NoHints) Remember(context.Context, []lockfile.Package) {}

// NoStatuses is the part of a [fetch.Lookup] of packages whose versions have no statuses.
type NoStatuses struct{}

// Status implements [fetch.Lookup].
func (NoStatuses) Status(context.Context, fetch.Origin, oci.Digest) (*catalog.VersionStatus, error) {
	return nil, nil
}

// NoSignatures is the part of a the content of packages of the manager whose content needs no signatures.
type NoSignatures struct{}

// Verify implements the content of packages of the manager.
func (NoSignatures) Verify(context.Context, fetch.Origin, oci.Digest, bool) ([]signature.Verdict, error) {
	return nil, nil
}
