package state

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/imageconfig"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Resolution is the content to which the reference of a package resolves.
type Resolution struct {
	Origin fetch.Origin
	Route  imageconfig.Route
	// Image is the reference after rewriting that was resolved to Digest.
	Image  string
	Digest oci.Digest
	// LookedUp reports whether a registry was queried and responded.
	LookedUp bool
	// LookupError is the reason why a registry could not be queried. Digest is the previous digest
	// then.
	LookupError error
}

// ResolveOptions adjust Resolve.
type ResolveOptions struct {
	// Pending returns the digest that an image was resolved to, as long as the status of
	// the package does not record it yet. It may be nil.
	Pending func(image string) (oci.Digest, bool)
	// MaxAge is the maximum age of another lookup whose result is reused.
	MaxAge time.Duration
}

// Resolve returns the content of a package. A tag is looked up once: after that the recorded digest
// is used until the reference, or its rewriting, changes, or the pull policy is Always (packages
// guide, "spec.packagePullPolicy"). While a registry cannot be queried, Resolve returns the digest
// that was installed from the same reference. If only the lookup fails, the route is valid even
// though the error is not nil.
func (p Packages) Resolve(
	ctx context.Context, pkg v1.Package, revisions []v1.PackageRevision, o ResolveOptions,
) (Resolution, error) {
	spec := pkg.PackageSpec()
	origin, route, err := p.Origins.Locate(ctx, spec.Package, spec.PackagePullSecrets, spec.PackagePullPolicy)
	if err != nil {
		return Resolution{}, err
	}
	origin.Lenient = revision.LenientContent(pkg)
	out := Resolution{Origin: origin, Route: route, Image: route.Image, Digest: origin.Ref.Digest}
	if !out.Digest.IsZero() {
		return out, nil
	}
	recorded, known := recordedDigest(pkg, route.Image, revisions, o.Pending)
	if known && spec.PackagePullPolicy != corev1.PullAlways {
		out.Digest = recorded
		return out, nil
	}
	if !revision.MayPull(spec.PackagePullPolicy) {
		out.Digest, err = p.Content.Named(ctx, spec.Package)
		return out, err
	}
	out.Digest, err = p.Content.Resolve(ctx, origin, o.MaxAge)
	if err == nil {
		out.LookedUp = true
		return out, nil
	}
	image := route.Image
	if !known {
		recorded, image, known = beforeRewriting(pkg)
	}
	if !known {
		return out, err
	}
	out.Image = image
	out.Digest, out.LookupError = recorded, err
	return out, nil
}

// recordedDigest returns the digest that an image of a package was resolved to before.
func recordedDigest(
	pkg v1.Package, image string, revisions []v1.PackageRevision, pending func(string) (oci.Digest, bool),
) (oci.Digest, bool) {
	if pending != nil {
		if d, ok := pending(image); ok {
			return d, true
		}
	}
	d, err := oci.ParseDigest(revision.Resolved(pkg, image, revisions))
	return d, err == nil
}

// beforeRewriting returns the content that the reference of a package was resolved to before an
// ImageConfig rewrote it. That content runs until the new repository can be queried.
func beforeRewriting(pkg v1.Package) (d oci.Digest, image string, known bool) {
	status := pkg.PackageStatus()
	if status.CurrentIdentifier != pkg.PackageSpec().Package {
		return oci.Digest{}, "", false
	}
	d, err := oci.ParseDigest(status.ResolvedDigest)
	return d, status.ResolvedPackage, err == nil
}
