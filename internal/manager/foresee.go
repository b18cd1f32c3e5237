package manager

import (
	"cmp"
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/closure"
	"github.com/xpkg-dev/xpkg/internal/desired"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/plan"
	"github.com/xpkg-dev/xpkg/internal/revision"
)

// foresee refuses all changes when a package that would be made or moved, or the one for
// whose sake that happens, brings an object that it can never have: one that another
// package holds, or that comes with another one of them. It reads them all before, so
// that what cannot be read, or does not fit this cluster, stops the whole as well.
func (r *revisionReconciler) foresee(ctx context.Context, f family, seen *closure.Graph, changes []closure.Change) error {
	holders, err := r.holders(ctx, f, seen, changes)
	if err != nil {
		return err
	}
	own, err := r.brings(ctx, f.rev)
	if err != nil {
		return err
	}
	brought, err := r.brought(ctx, f.pkg, changes)
	if err != nil {
		return err
	}
	refusals := holders.Take(lower(r.kind)+"/"+f.pkg.GetName(), own)
	for i, c := range changes {
		refusals = append(refusals, holders.Take(c.To.Package, brought[i])...)
	}
	if len(refusals) == 0 {
		return nil
	}
	return apply.Refused(refusals, "%s/%s and what it needs cannot be installed", lower(r.kind), f.pkg.GetName())
}

// holders are those of the objects of all packages, but for the ones that change and for
// the package itself.
func (r *revisionReconciler) holders(ctx context.Context, f family, seen *closure.Graph, changes []closure.Change) (plan.Holders, error) {
	stay := map[packageKey]bool{}
	for _, n := range seen.Nodes() {
		stay[packageKey{n.Kind, n.Name}] = true
	}
	delete(stay, keyOf(f.pkg))
	for _, c := range changes {
		if c.Object != nil {
			delete(stay, packageKey{c.Object.Kind, c.Object.Name})
		}
	}
	revisions, err := r.all(ctx)
	if err != nil {
		return nil, err
	}
	holders := r.claims.holders(stay)
	for _, rev := range revisions {
		if !active(rev) || !stay[packageKey{rev.PackageKind(), rev.GetLabels()[v1.LabelPackage]}] {
			continue
		}
		for _, o := range rev.RevisionStatus().ObjectRefs {
			if o.UID != "" {
				holders.Put(v1.RevisionKind(rev.PackageKind())+"/"+rev.GetName(), plan.Ref{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name})
			}
		}
	}
	return holders, nil
}

// readers is how many packages are read at the same time.
const readers = 8

// brought are the objects of packages that change, in their order.
func (r *revisionReconciler) brought(ctx context.Context, parent v1.Package, changes []closure.Change) ([][]plan.Ref, error) {
	out := make([][]plan.Ref, len(changes))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for i, c := range changes {
		group.Go(func() error {
			pkg, err := r.contentOf(ctx, parent, c)
			if err != nil {
				return fmt.Errorf("read %s, which %s needs: %w", c.To.Package, parent.GetName(), err)
			}
			objects, err := desired.Of(pkg, desired.Options{Package: names(c)[0]})
			if err == nil {
				out[i] = objects.Refs()
			}
			return err
		})
	}
	return out, group.Wait()
}

// contentOf is what a package that changes will be, which is at hand: it was read to
// prove what it needs.
func (r *revisionReconciler) contentOf(ctx context.Context, parent v1.Package, c closure.Change) (*format.Package, error) {
	p := needed(parent, c)
	if c.Object != nil {
		p = v1.NewPackage(c.Object.Kind)
		if err := r.live.Get(ctx, client.ObjectKey{Name: c.Object.Name}, p); err != nil {
			return nil, err
		}
	}
	spec, image := p.PackageSpec(), c.Reference()
	policy := cmp.Or(spec.PackagePullPolicy, corev1.PullIfNotPresent)
	origin, _, err := r.origins.Locate(ctx, image, spec.PackagePullSecrets, policy)
	if err != nil {
		return nil, err
	}
	pkg, err := r.read(ctx, origin, c.To.Digest, image, policy)
	if err != nil {
		return nil, err
	}
	if err := revision.Installable(p, pkg.Meta); err != nil || spec.IgnoreCrossplaneConstraints {
		return pkg, err
	}
	return pkg, r.core.admits(ctx, pkg.Meta)
}
