package controller

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/controller/reservations"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// foresee refuses all changes when a package that would be made or moved, or the one for
// whose sake that happens, brings an object that it can never have: one that another
// package holds, or that comes with another one of them. It reads them all before, so
// that what cannot be read, or does not fit this cluster, stops the whole as well.
func (r *revisionReconciler) foresee(ctx context.Context, f family, seen *graph.Graph, changes []graph.Change) error {
	holders, err := r.holders(ctx, f, seen, changes)
	if err != nil {
		return err
	}
	own, err := r.brings(ctx, f.rev)
	if err != nil {
		return err
	}
	reader := state.AdditionReader{Packages: r.packages(), Installed: r.installed, CheckCrossplane: r.core.Check}
	added := make([][]plan.Ref, len(changes))
	for i, a := range reader.ReadAll(ctx, f.pkg, changes) {
		if a.Err != nil {
			return a.Err
		}
		added[i] = a.Objects
	}
	refusals := graph.Conflicts(holders, lower(r.kind)+"/"+f.pkg.GetName(), own, changes, added)
	if len(refusals) == 0 {
		return nil
	}
	return apply.Refused(refusals, "%s/%s and what it needs cannot be installed", lower(r.kind), f.pkg.GetName())
}

// installed reads a package from the API server.
func (w *world) installed(ctx context.Context, kind, name string) (v1.Package, error) {
	p := v1.NewPackage(kind)
	return p, w.live.Get(ctx, client.ObjectKey{Name: name}, p)
}

// holders are those of the objects of all packages, but for the ones that change and for
// the package itself.
func (r *revisionReconciler) holders(ctx context.Context, f family, seen *graph.Graph, changes []graph.Change) (plan.Holders, error) {
	stay := map[reservations.Key]bool{}
	for _, n := range seen.Nodes() {
		stay[reservations.Key{Kind: n.Kind, Name: n.Name}] = true
	}
	delete(stay, reservations.KeyOf(f.pkg))
	for _, c := range changes {
		if c.Existing != nil {
			delete(stay, reservations.Key{Kind: c.Existing.Kind, Name: c.Existing.Name})
		}
	}
	revisions, err := state.ListRevisions(ctx, r.client)
	if err != nil {
		return nil, err
	}
	holders := r.reservations.Holders(stay)
	for _, rev := range revisions {
		if !active(rev) || !stay[reservations.Key{Kind: rev.PackageKind(), Name: rev.GetLabels()[v1.LabelPackage]}] {
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
