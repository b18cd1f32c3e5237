package packages

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/expectations"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Resolver resolves the references of packages.
type Resolver struct {
	Packages state.Packages
	// Poll is the interval between two lookups of a package with the pull policy Always.
	Poll time.Duration
	// pending holds the digests that were looked up and that the statuses do not record yet.
	pending expectations.Cache[types.UID, resolvedImage]
}

// resolvedImage is the result of a lookup: the reference of a package, the image after rewriting, and the
// digest of the image.
type resolvedImage struct {
	reference, image string
	digest           oci.Digest
}

// resolve resolves the reference of a package to a digest, and records the ImageConfigs that apply
// in its status.
func (r *Resolver) resolve(
	ctx context.Context, p v1.Package, revisions []v1.PackageRevision,
) (state.Resolution, error) {
	res, err := r.Packages.Resolve(ctx, p, revisions, state.ResolveOptions{
		Pending: func(image string) (oci.Digest, bool) { return r.pendingDigest(p, image) },
		MaxAge:  r.maxAge(p.PackageSpec().PackagePullPolicy),
	})
	if res.Image != "" {
		p.PackageStatus().AppliedImageConfigRefs = res.Route.Applied
	}
	if res.LookedUp {
		r.pending.Set(p.GetUID(), resolvedImage{p.PackageSpec().Package, res.Image, res.Digest})
	}
	return res, err
}

// maxAge returns the maximum age of the lookup of another package that is reused. Packages with the
// pull policy Always that refer to the same tag share lookups.
func (r *Resolver) maxAge(policy corev1.PullPolicy) time.Duration {
	if policy == corev1.PullAlways {
		return r.Poll / 2
	}
	return 0
}

// pendingDigest returns the digest of the last lookup of an image, and true, until the status
// records the digest. It saves a second lookup of a tag.
func (r *Resolver) pendingDigest(p v1.Package, image string) (oci.Digest, bool) {
	status := p.PackageStatus()
	last, pending := r.pending.Pending(p.GetUID(), func(last resolvedImage) bool {
		return status.CurrentIdentifier == last.reference && status.ResolvedPackage == last.image
	})
	return last.digest, pending && last.reference == p.PackageSpec().Package && last.image == image
}
