package graph

import (
	"context"
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
)

// Resolve finds one solution for a package and all connected packages, and returns their graph. The set of connected
// packages can grow with the solution: a dependency of a package that is not installed yet may be installed for others,
// under any name. A pending package whose dependencies contradict each other or the installed packages does not count:
// it would stop every new package that shares a dependency with it.
func (g *Graph) Resolve(
	ctx context.Context, r *resolver.Resolver, kind, name string, policy Policy,
) (*Graph, resolver.Result, error) {
	own, result, err := g.resolve(ctx, r, kind, name, policy)
	if !isConflict(err) {
		return own, result, err
	}
	nodes, isChanged := slices.Clone(g.nodes), false
	for i, n := range g.nodes {
		if _, isConnected := own.Find(n.Repository); !isConnected || !n.Pending || n.Kind == kind && n.Name == name {
			continue
		}
		alone := g.with(slices.DeleteFunc(
			slices.Clone(g.nodes), func(other Node) bool { return other.Pending && other.Compare(n) != 0 },
		))
		if _, _, refused := alone.resolve(ctx, r, n.Kind, n.Name, policy); isConflict(refused) {
			nodes[i].SkipDependencies, isChanged = true, true
		}
	}
	if !isChanged {
		return own, result, err
	}
	return g.with(nodes).resolve(ctx, r, kind, name, policy)
}

func isConflict(err error) bool {
	return err != nil && errcode.From(err).Code.Class == errcode.Conflict
}

// with returns the graph with other packages in place of its own.
func (g *Graph) with(nodes []Node) *Graph {
	out := New(nodes, g.location)
	out.outsideRequirements = g.outsideRequirements
	return out
}

// resolve is [Graph.Resolve], but all packages count.
func (g *Graph) resolve(
	ctx context.Context, r *resolver.Resolver, kind, name string, policy Policy,
) (*Graph, resolver.Result, error) {
	own := g.Component(kind, name)
	for {
		inside, outside := g.split(own)
		q := own.Request(policy)
		q.Locked = append(q.Locked, g.lockedPackages(outside)...)
		result, err := r.Resolve(ctx, q)
		if err != nil {
			return own, result, err
		}
		met := g.existing(own, result)
		if len(met) == 0 {
			return own, result, nil
		}
		own = g.component(append(inside, met...))
	}
}

// split separates the packages that are also in another graph.
func (g *Graph) split(own *Graph) (inside, outside []int) {
	in := map[string]bool{}
	for _, n := range own.nodes {
		in[n.objectName()] = true
	}
	for i, n := range g.nodes {
		if in[n.objectName()] {
			inside = append(inside, i)
		} else {
			outside = append(outside, i)
		}
	}
	return inside, outside
}

// lockedPackages returns packages as installed versions rather than requests: they count when a package requires them.
func (g *Graph) lockedPackages(nodes []int) []lockfile.Package {
	var out []lockfile.Package
	for _, i := range nodes {
		if n := g.nodes[i]; g.byRepository[n.Repository][0] == i && !n.Digest.IsZero() {
			out = append(out, n.locked())
		}
	}
	return out
}

// existing returns the installed packages of a solution that are not in the graph for which it was computed.
func (g *Graph) existing(own *Graph, r resolver.Result) []int {
	var out []int
	for _, p := range r.Packages {
		if _, known := own.Find(p.Repository); !known {
			out = append(out, g.byRepository[p.Repository]...)
		}
	}
	return out
}
