package preview

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/content"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/oci"
	"github.com/xpkg-dev/xpkg/internal/origin"
	"github.com/xpkg-dev/xpkg/internal/revision"
)

// found is the content of a package.
type found struct {
	origin content.Origin
	digest oci.Digest
	// asked says that a registry was asked for the digest just now.
	asked bool
}

// resolve finds the digest of a package in the way of the package manager: one in
// the reference holds, then one that is recorded for the reference; otherwise a
// registry is asked, or the cache when none may be.
func (pl *Planner) resolve(ctx context.Context, p v1.Package, revisions []v1.PackageRevision) (found, error) {
	spec := p.PackageSpec()
	o, route, err := pl.finder().Locate(ctx, spec.Package, spec.PackagePullSecrets, spec.PackagePullPolicy)
	if err != nil {
		return found{}, err
	}
	if !o.Ref.Digest.IsZero() {
		return found{origin: o, digest: o.Ref.Digest}, nil
	}
	known, err := oci.ParseDigest(revision.Resolved(p, route.Image, revisions))
	recorded := err == nil
	if recorded && spec.PackagePullPolicy != corev1.PullAlways {
		return found{origin: o, digest: known}, nil
	}
	if !revision.MayPull(spec.PackagePullPolicy) {
		d, err := pl.Source.Named(ctx, spec.Package)
		return found{origin: o, digest: d}, err
	}
	d, err := pl.Source.Resolve(ctx, o, 0)
	if err != nil && recorded {
		return found{origin: o, digest: known}, nil
	}
	return found{origin: o, digest: d, asked: true}, err
}

func (pl *Planner) finder() origin.Finder {
	return origin.Finder{Reader: pl.Reader, Namespace: pl.Namespace}
}

// contentOf gives the package of a revision that exists.
func (pl *Planner) contentOf(ctx context.Context, rev v1.PackageRevision) (*format.Package, error) {
	spec := rev.RevisionSpec()
	d, err := oci.ParseDigest(spec.Digest)
	if err != nil {
		return nil, fmt.Errorf("revision %s records no digest", rev.GetName())
	}
	o, _, err := pl.finder().Locate(ctx, spec.Image, spec.PackagePullSecrets, spec.PackagePullPolicy)
	if err != nil {
		return nil, err
	}
	return content.Read(ctx, pl.Source, o, d, spec.Image, revision.MayPull(spec.PackagePullPolicy))
}

// curious bounds the question whether a tag has moved, whose answer changes
// nothing.
const curious = 3 * time.Second

// tagNow tells what a tag stands for now, where its digest was known without
// asking. Nobody needs the answer, so none is as good.
func (pl *Planner) tagNow(ctx context.Context, p v1.Package, f found) (oci.Digest, bool) {
	if f.asked || f.origin.Ref.Tag == "" || !revision.MayPull(p.PackageSpec().PackagePullPolicy) {
		return oci.Digest{}, false
	}
	ctx, cancel := context.WithTimeout(ctx, curious)
	defer cancel()
	d, err := pl.Source.Resolve(ctx, untagged(f.origin), 0)
	return d, err == nil
}

// untagged is an origin without its digest: what its tag stands for is asked.
func untagged(o content.Origin) content.Origin {
	o.Ref.Digest = oci.Digest{}
	places := make([]content.Place, len(o.Places))
	for i, p := range o.Places {
		p.Ref.Digest = oci.Digest{}
		places[i] = p
	}
	o.Places = places
	return o
}
