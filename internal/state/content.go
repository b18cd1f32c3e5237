package state

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/activation"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/imageconfig"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/signature"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Content reads the content of packages, from the package cache or from registries.
type Content interface {
	// Resolve returns the digest to which an image refers now. It reuses a lookup that is not older
	// than maxAge.
	Resolve(ctx context.Context, o fetch.Origin, maxAge time.Duration) (oci.Digest, error)
	// Read returns the package with a digest. Content that is not in the cache is pulled
	// if pull is set.
	Read(ctx context.Context, o fetch.Origin, d oci.Digest, pull bool) (*xpkg.Package, error)
	// Verify returns who has signed the content with a digest, as its origin requires. Content that was
	// read is verified.
	Verify(ctx context.Context, o fetch.Origin, d oci.Digest, ask bool) ([]signature.Verdict, error)
	// Named returns the digest of the content that a user added to the package cache
	// under a name.
	Named(ctx context.Context, name string) (oci.Digest, error)
}

// Origins locates images, as an origin.Finder does.
type Origins interface {
	graph.Origins
	// Rewrites returns a function that maps a repository to the location from which it is read,
	// according to the current ImageConfigs.
	Rewrites(ctx context.Context) (func(repository string) string, error)
}

// Packages reads the content of packages and revisions.
type Packages struct {
	Content Content
	Origins Origins
	// Namespace is the namespace of package runtimes.
	Namespace string
	// Kinds selects the active kinds of Providers.
	Kinds Kinds
}

// Source is the source of the content of a revision.
type Source struct {
	Origin fetch.Origin
	Digest oci.Digest
	Route  imageconfig.Route
}

// Read returns the package with a digest, which was requested as image.
func (p Packages) Read(
	ctx context.Context, o fetch.Origin, d oci.Digest, image string, policy corev1.PullPolicy,
) (*xpkg.Package, error) {
	return fetch.Read(ctx, p.Content, o, d, image, revision.MayPull(policy))
}

// ReadRevision returns the content of a revision by the digest in its spec. It resolves the image
// of a revision without a digest, which another package manager created. If only the content cannot
// be read, the source is valid even though the error is not nil.
func (p Packages) ReadRevision(ctx context.Context, rev v1.PackageRevision) (*xpkg.Package, Source, error) {
	spec := rev.RevisionSpec()
	origin, route, err := p.Origins.Locate(ctx, spec.Image, spec.PackagePullSecrets, spec.PackagePullPolicy)
	if err != nil {
		return nil, Source{}, err
	}
	origin.Lenient = revision.LenientContent(rev)
	source := Source{Origin: origin, Digest: origin.Ref.Digest, Route: route}
	switch {
	case spec.Digest != "":
		source.Digest, err = oci.ParseDigest(spec.Digest)
	case source.Digest.IsZero():
		source.Digest, err = p.Content.Resolve(ctx, origin, 0)
	}
	if err != nil {
		return nil, Source{}, err
	}
	pkg, err := p.Read(ctx, origin, source.Digest, spec.Image, spec.PackagePullPolicy)
	return pkg, source, err
}

// Desired returns the objects of a revision whose content is pkg, with the selected kinds; nil means all.
func (p Packages) Desired(
	pkg *xpkg.Package, rev v1.PackageRevision, kinds *activation.Selection,
) (*desired.Objects, error) {
	options := revision.Additions(rev, p.Namespace)
	options.Omit = kinds.Omits
	return desired.Of(pkg, options)
}

// ObjectRefs returns the objects of a revision: those in its status or, if its status lists none,
// those in its content.
func (p Packages) ObjectRefs(ctx context.Context, rev v1.PackageRevision) ([]plan.Ref, error) {
	if refs := revision.Objects(rev); len(refs) > 0 {
		return refs, nil
	}
	pkg, _, err := p.ReadRevision(ctx, rev)
	if err != nil {
		return nil, err
	}
	objects, err := p.Desired(pkg, rev, nil)
	if err != nil {
		return nil, err
	}
	return objects.Refs(), nil
}
