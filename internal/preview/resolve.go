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
func (pl *Planner) resolve(ctx context.Context, p v1.Package) (found, error) {
	spec := p.PackageSpec()
	if !revision.MayPull(spec.PackagePullPolicy) {
		if _, err := oci.ParseReference(spec.Package, oci.ParseOptions{}); err != nil {
			d, err := pl.Source.Named(ctx, spec.Package)
			return found{digest: d}, err
		}
	}
	o, err := pl.origin(ctx, p)
	if err != nil {
		return found{}, err
	}
	if !o.Ref.Digest.IsZero() {
		return found{origin: o, digest: o.Ref.Digest}, nil
	}
	if recorded, ok := revision.Recorded(p); ok {
		if d, err := oci.ParseDigest(recorded); err == nil {
			return found{origin: o, digest: d}, nil
		}
	}
	if !revision.MayPull(spec.PackagePullPolicy) {
		d, err := pl.Source.Named(ctx, spec.Package)
		return found{origin: o, digest: d}, err
	}
	d, err := pl.Source.Resolve(ctx, o, 0)
	return found{origin: o, digest: d, asked: true}, err
}

func (pl *Planner) origin(ctx context.Context, p v1.Package) (content.Origin, error) {
	finder := origin.Finder{Reader: pl.Reader, Namespace: pl.Namespace}
	o, _, err := finder.Find(ctx, p.PackageSpec().Package, secretNames(p.PackageSpec().PackagePullSecrets))
	return o, err
}

func secretNames(refs []corev1.LocalObjectReference) []string {
	var names []string
	for _, r := range refs {
		names = append(names, r.Name)
	}
	return names
}

// contentOf gives the package of a revision that exists.
func (pl *Planner) contentOf(ctx context.Context, rev v1.PackageRevision) (*format.Package, error) {
	spec := rev.RevisionSpec()
	d, err := oci.ParseDigest(spec.Digest)
	if err != nil {
		return nil, fmt.Errorf("revision %s records no digest", rev.GetName())
	}
	finder := origin.Finder{Reader: pl.Reader, Namespace: pl.Namespace}
	o, _, err := finder.Find(ctx, spec.Image, secretNames(spec.PackagePullSecrets))
	if err != nil {
		return nil, err
	}
	return pl.Source.Read(ctx, o, d, revision.MayPull(spec.PackagePullPolicy))
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
