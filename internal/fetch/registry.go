package fetch

import (
	"context"
	"errors"
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
)

// ErrLookup is the code for a package that cannot be looked up, because something other than
// the package is missing.
var ErrLookup = errcode.Code{
	Name: "PackageLookup", Class: errcode.Unavailable,
	Cause: "A package cannot be resolved, because something is missing that is needed to access its registry, such as a pull secret.",
	Fix:   "Correct the cause in the message.",
}

// Lookup reads the versions and the metadata of packages, and predicts their dependencies. A Source implements it.
type Lookup interface {
	// Tags returns the tags of a repository, from the first location of the origin that has
	// any.
	Tags(ctx context.Context, o Origin) (TagList, error)
	// Describe returns the metadata of the content with a digest or, if the digest is zero,
	// with the digest or the tag of the origin.
	Describe(ctx context.Context, o Origin, d oci.Digest) (Description, error)
	// Prove is like Describe, but reads only package.yaml.
	Prove(ctx context.Context, o Origin, d oci.Digest) (Description, error)
	// Status returns the status of the content with a digest, and nil if it has none.
	Status(ctx context.Context, o Origin, d oci.Digest) (*catalog.VersionStatus, error)
	resolver.Hints
}

// Registry looks up packages for a resolver: it finds the origin of each reference, and
// limits the requests to each host.
type Registry struct {
	lookup Lookup
	locate func(ctx context.Context, ref oci.Reference) (Origin, error)
	hosts  hostLimiter
}

var _ resolver.Registry = (*Registry)(nil)

// NewRegistry returns a registry. Locate returns the origin of a reference; nil means the
// reference itself.
func NewRegistry(lookup Lookup, locate func(ctx context.Context, ref oci.Reference) (Origin, error)) *Registry {
	if locate == nil {
		locate = func(_ context.Context, ref oci.Reference) (Origin, error) { return Plain(ref), nil }
	}
	return &Registry{lookup: lookup, locate: locate}
}

// Versions returns the tags of a repository.
func (r *Registry) Versions(ctx context.Context, repository oci.Reference) (resolver.Versions, error) {
	// ImageConfigs match prefixes of whole references, and the tag does not affect the list.
	repository.Tag = "latest"
	o, err := r.locate(ctx, repository)
	if err != nil {
		return resolver.Versions{}, classifyLookup(err, repository)
	}
	return r.versions(ctx, o, repository)
}

func (r *Registry) versions(ctx context.Context, o Origin, repository oci.Reference) (resolver.Versions, error) {
	list, err := limited(ctx, &r.hosts, o, func() (TagList, error) { return r.lookup.Tags(ctx, o) })
	out := resolver.Versions{Tags: list.Tags, From: list.From}
	if len(list.Next.Endpoints) > 0 {
		out.Next = func(ctx context.Context) (resolver.Versions, error) { return r.versions(ctx, list.Next, repository) }
	}
	return out, classifyLookup(err, repository)
}

// Location returns the location of the repository after rewriting.
func (r *Registry) Location(ctx context.Context, repository oci.Reference) (string, error) {
	repository.Tag = "latest"
	o, err := r.locate(ctx, repository)
	return o.Ref.Location(), err
}

// Metadata returns the metadata of a version.
func (r *Registry) Metadata(ctx context.Context, version oci.Reference) (resolver.Metadata, error) {
	return r.describe(ctx, version, func(o Origin) (Description, error) { return r.lookup.Describe(ctx, o, oci.Digest{}) })
}

// Verify returns the metadata of a version from its package.yaml.
func (r *Registry) Verify(ctx context.Context, version oci.Reference, digest oci.Digest) (resolver.Metadata, error) {
	return r.describe(ctx, version, func(o Origin) (Description, error) { return r.lookup.Prove(ctx, o, digest) })
}

func (r *Registry) describe(
	ctx context.Context, version oci.Reference, read func(Origin) (Description, error),
) (resolver.Metadata, error) {
	o, err := r.locate(ctx, version)
	if err != nil {
		return resolver.Metadata{}, classifyLookup(err, version)
	}
	d, err := limited(ctx, &r.hosts, o, func() (Description, error) { return read(o) })
	return d, classifyLookup(err, version)
}

// limited sends a request once the host of an origin has a free slot.
func limited[T any](
	ctx context.Context, hosts *hostLimiter, o Origin, request func() (T, error),
) (answer T, err error) {
	release, err := hosts.acquire(ctx, o)
	if err != nil {
		return answer, err
	}
	defer release()
	return request()
}

// absentCodes are the codes that report that a version or a repository does not exist.
var absentCodes = []errcode.Code{
	remote.ErrRepositoryNotFound, remote.ErrTagNotFound, oci.ErrManifestNotFound, oci.ErrBlobMissing,
	oci.ErrPlatformNotFound,
}

// classifyLookup returns ErrLookup if something other than the version is missing, such as a
// pull secret. A resolver selects another version for a missing version, and must not do so
// in this case.
func classifyLookup(err error, ref oci.Reference) error {
	if err == nil || errcode.From(err).Code.Class.Name != errcode.NotFound.Name {
		return err
	}
	if slices.ContainsFunc(absentCodes, func(c errcode.Code) bool { return errors.Is(err, c) }) {
		return err
	}
	return ErrLookup.New(err, "cannot look up %s", ref)
}
