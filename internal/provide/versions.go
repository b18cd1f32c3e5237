package provide

import (
	"context"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
)

// DefiningVersions is a registry without the versions whose content does not define a kind for which they were selected. The
// selection of a provider is a claim about a package, and a version of it is selected before its content is read.
type DefiningVersions struct {
	resolver.Registry
	excluded map[string]error
	first    error
}

// ExcludeVersions makes the registry of a resolver one from which versions can be excluded.
func ExcludeVersions(r *resolver.Resolver) *DefiningVersions {
	v := &DefiningVersions{Registry: r.Registry, excluded: map[string]error{}}
	r.Registry = v
	return v
}

// Exclude excludes a version for a reason, and reports whether it was there.
func (v *DefiningVersions) Exclude(version oci.Reference, reason error) bool {
	key := withoutDigest(version)
	if v.excluded[key] != nil {
		return false
	}
	v.excluded[key] = reason
	if v.first == nil {
		v.first = reason
	}
	return true
}

// Explain returns the reason of the first exclusion for the error of a resolution that has no solution without the excluded versions,
// and any other error as it is.
func (v *DefiningVersions) Explain(err error) error {
	if err != nil && v.first != nil && errcode.From(err).Code.Class != errcode.Interrupted {
		return v.first
	}
	return err
}

// Metadata implements [resolver.Registry].
func (v *DefiningVersions) Metadata(ctx context.Context, version oci.Reference) (resolver.Metadata, error) {
	if reason := v.excluded[withoutDigest(version)]; reason != nil {
		return resolver.Metadata{}, resolver.ErrUnusable.New(reason, "%s is not selected", version)
	}
	return v.Registry.Metadata(ctx, version)
}

// withoutDigest returns a reference without its digest if it has a tag.
func withoutDigest(ref oci.Reference) string {
	if ref.Tag != "" {
		ref.Digest = oci.Digest{}
	}
	return ref.String()
}
