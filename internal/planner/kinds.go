package planner

import (
	"context"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// bindKinds selects the packages that provide the kinds that a package requires, and records them on p, as the manager
// does. For other kinds it selects packages from the sources of the planner. It fails with AmbiguousKind or NoProvider,
// so that the plan of a package whose kinds are not decided has no writes.
func (pl *Planner) bindKinds(ctx context.Context, s *clusterState, p v1.Package, pkg *xpkg.Package) ([]dependency.Dependency, error) {
	if len(pkg.Meta.Kinds) == 0 || p.PackageSpec().SkipDependencyResolution {
		return nil, nil
	}
	recorded := graph.KindProviders(p)
	if s.live != nil {
		recorded = append(graph.KindProviders(s.live), recorded...)
	}
	found, err := state.BindKinds(ctx, pl.Cluster, pkg, recorded, s.repositoryOf)
	if err != nil {
		return nil, err
	}
	for _, k := range found.Missing {
		selected, err := pl.selectProvider(ctx, s, k)
		if err != nil {
			return nil, err
		}
		found.Selected = append(found.Selected, selected...)
	}
	graph.SetKindProviders(p, found.Selected)
	return found.Selected, nil
}

// selectProvider selects the packages for a kind, or for all kinds of a group, from the sources of the planner.
func (pl *Planner) selectProvider(ctx context.Context, s *clusterState, kind dependency.KindRef) ([]dependency.Dependency, error) {
	finder := pl.Kinds
	if finder == nil {
		finder = &provide.Finder{}
	}
	all := []dependency.KindRef{kind}
	if kind.IsAll() {
		known, err := finder.Expand(ctx, kind)
		if err != nil {
			return nil, err
		}
		if len(known) > 0 {
			all = known
		}
	}
	var out []dependency.Dependency
	for _, k := range all {
		r, err := finder.Rank(ctx, provide.Request{Kind: k, Present: s.repositories()})
		if err != nil {
			return nil, err
		}
		if err := finder.Err(ctx, r); err != nil {
			return nil, err
		}
		out = append(out, dependency.Dependency{Package: r.Order[0].Repository, Constraint: r.Order[0].Constraint, CRD: k.String()})
	}
	return out, nil
}

// repositoryOf returns the repository of an installed package, or "".
func (s *clusterState) repositoryOf(kind, name string) string {
	for _, x := range s.others {
		if x.PackageKind() == kind && x.GetName() == name {
			return oci.RepositoryName(x.PackageSpec().Package)
		}
	}
	return ""
}

// repositories returns the repositories of all other packages.
func (s *clusterState) repositories() map[string]bool {
	out := map[string]bool{}
	for _, x := range s.others {
		out[oci.RepositoryName(x.PackageSpec().Package)] = true
	}
	return out
}
