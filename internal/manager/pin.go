package manager

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/content"
	"github.com/xpkg-dev/xpkg/internal/oci"
	"github.com/xpkg-dev/xpkg/internal/revision"
)

// pinned is the content that a package stands for.
type pinned struct {
	origin content.Origin
	// image is the reference after rewriting, without what it was resolved to.
	image  string
	digest oci.Digest
	// lookup is why the registry could not be asked again. What was resolved
	// before holds until it can.
	lookup error
}

// pin gives the content of a package. A tag is asked for once: after that the
// recorded digest holds until the reference, or what an image config makes of it,
// changes, or the policy is to ask always (packages guide,
// "spec.packagePullPolicy").
func (r *packageReconciler) pin(ctx context.Context, p v1.Package, revisions []v1.PackageRevision) (pinned, error) {
	spec := p.PackageSpec()
	origin, route, err := r.origins.Locate(ctx, spec.Package, spec.PackagePullSecrets, spec.PackagePullPolicy)
	if err != nil {
		return pinned{}, err
	}
	p.PackageStatus().AppliedImageConfigRefs = route.Applied
	out := pinned{origin: origin, image: route.Image, digest: origin.Ref.Digest}
	if !out.digest.IsZero() {
		return out, nil
	}
	known, recorded := r.recorded(p, route.Image, revisions)
	if recorded && spec.PackagePullPolicy != corev1.PullAlways {
		out.digest = known
		return out, nil
	}
	if !revision.MayPull(spec.PackagePullPolicy) {
		out.digest, err = r.content.Named(ctx, spec.Package)
		return out, err
	}
	out.digest, err = r.content.Resolve(ctx, origin, r.maxAge(spec.PackagePullPolicy))
	if err == nil {
		r.pins.put(pinOf(p, route.Image), out.digest)
		return out, nil
	}
	if !recorded {
		known, out.image, recorded = before(p)
	}
	if recorded {
		out.digest, out.lookup, err = known, err, nil
	}
	return out, err
}

// before is what the reference of a package was resolved to where its image was before an
// image config said otherwise. It is what runs until the new place can be asked.
func before(p v1.Package) (d oci.Digest, image string, known bool) {
	status := p.PackageStatus()
	if status.CurrentIdentifier != p.PackageSpec().Package {
		return oci.Digest{}, "", false
	}
	d, err := oci.ParseDigest(status.ResolvedDigest)
	return d, status.ResolvedPackage, err == nil
}

// maxAge is how old an answer may be that somebody else got. Packages that look
// up the same tag share one look-up for each interval.
func (r *packageReconciler) maxAge(policy corev1.PullPolicy) time.Duration {
	if policy == corev1.PullAlways {
		return r.poll / 2
	}
	return 0
}

// recorded is what the reference of a package was resolved to before.
func (r *packageReconciler) recorded(p v1.Package, image string, revisions []v1.PackageRevision) (oci.Digest, bool) {
	if d, ok := r.pins.get(pinOf(p, image), p.PackageStatus()); ok {
		return d, true
	}
	d, err := oci.ParseDigest(revision.Resolved(p, image, revisions))
	return d, err == nil
}
