package state

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/imageconfig"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Content reads the content of packages, from the package cache or from registries.
type Content interface {
	// Resolve returns the digest that an image refers to now. A digest that was looked up
	// within maxAge is returned again.
	Resolve(ctx context.Context, o fetch.Origin, maxAge time.Duration) (oci.Digest, error)
	// Read returns the package with a digest. Content that is not in the cache is pulled
	// if pull is set.
	Read(ctx context.Context, o fetch.Origin, d oci.Digest, pull bool) (*xpkg.Package, error)
	// Named returns the digest of the content that a user added to the package cache
	// under a name.
	Named(ctx context.Context, name string) (oci.Digest, error)
}

// Origins locates images, as an origin.Finder does.
type Origins interface {
	graph.Origins
	// Rewrites returns a function from repositories to the repositories that they are read
	// from, by the ImageConfigs of now.
	Rewrites(ctx context.Context) (func(repository string) string, error)
}

// Packages reads the content of packages and revisions.
type Packages struct {
	Content Content
	Origins Origins
	// Namespace is where the runtimes of packages run.
	Namespace string
}

// Source is where the content of a revision comes from.
type Source struct {
	Origin fetch.Origin
	Digest oci.Digest
	Route  imageconfig.Route
}

// Read returns the package with a digest, which was requested as image.
func (p Packages) Read(ctx context.Context, o fetch.Origin, d oci.Digest, image string, policy corev1.PullPolicy) (*xpkg.Package, error) {
	return fetch.Read(ctx, p.Content, o, d, image, revision.MayPull(policy))
}

// ReadRevision returns the content of a revision by the digest that it records. A revision that
// another package manager created records none; its image is resolved then. The source is valid
// as far as it is known, also with an error.
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

// Desired returns the objects of a revision with this content.
func (p Packages) Desired(pkg *xpkg.Package, rev v1.PackageRevision) (*desired.Objects, error) {
	return desired.Of(pkg, revision.Additions(rev, p.Namespace))
}

// ObjectRefs returns the objects that a revision owns: the objects in its status or, before it
// has established any, the objects in its content.
func (p Packages) ObjectRefs(ctx context.Context, rev v1.PackageRevision) ([]plan.Ref, error) {
	if refs := revision.Objects(rev); len(refs) > 0 {
		return refs, nil
	}
	pkg, _, err := p.ReadRevision(ctx, rev)
	if err != nil {
		return nil, err
	}
	objects, err := p.Desired(pkg, rev)
	if err != nil {
		return nil, err
	}
	return objects.Refs(), nil
}
