package state

import (
	"context"
	"errors"

	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// ResolveProviders is like [graph.Graph.Resolve], but selects versions that define the kinds for which packages of the
// graph have selected them. It reads the content of the packages that are installed or moved and that provide a kind; a
// content that cannot be read is not checked. If there are no such versions, it fails with KindNotProvided for a kind
// that the package itself requires, and otherwise returns the solution that other packages do not work with.
func ResolveProviders(ctx context.Context, g *graph.Graph, r *resolver.Resolver, kind, name string, policy graph.Policy,
	read func(context.Context, graph.Change) (*xpkg.Package, error),
) (*graph.Graph, resolver.Result, error) {
	type solution struct {
		own    *graph.Graph
		result resolver.Result
	}
	var breaking *solution // It breaks only other packages.
	versions := provide.ExcludeVersions(r)
	for {
		own, result, err := g.Resolve(ctx, r, kind, name, policy)
		if err != nil && breaking != nil && ctx.Err() == nil {
			return breaking.own, breaking.result, nil
		}
		if err != nil {
			return own, result, versions.Explain(err)
		}
		excluded, breaksOwn := false, false
		for _, c := range own.Changes(result) {
			selected, all := selectedKinds(own, c.To.Repository, kind, name)
			if len(all) == 0 {
				continue
			}
			content, err := read(ctx, c)
			if content == nil || err != nil && !errors.Is(err, xpkg.ErrIncompatible) {
				continue
			}
			if is, err := versions.Check(c.To.Reference(), content, all...); err != nil {
				if !is {
					return own, result, err
				}
				excluded = true
				breaksOwn = breaksOwn || provide.CheckSelected(c.Reference(), content, selected...) != nil
			}
		}
		if !excluded {
			return own, result, nil
		}
		if breaking == nil && !breaksOwn {
			breaking = &solution{own, result}
		}
	}
}

// selectedKinds returns the kinds for which a package of a graph has selected a repository, and those of all packages.
func selectedKinds(g *graph.Graph, repository, kind, name string) (own, all []dependency.KindRef) {
	for _, n := range g.Nodes() {
		for _, d := range n.Dependencies {
			k, err := dependency.ParseKindRef(d.CRD)
			if err != nil || g.Name(d.Package) != repository {
				continue
			}
			all = append(all, k)
			if n.Kind == kind && n.Name == name {
				own = append(own, k)
			}
		}
	}
	return own, all
}
