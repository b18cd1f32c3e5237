package graph

import (
	"context"

	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
)

// Resolve finds one solution for a package and for all that have to do with it, and
// gives the graph of these. Who that is can turn out only with the solution: what is
// needed by a package that is not there yet may be there, under whatever name, for
// others.
func (g *Graph) Resolve(ctx context.Context, r *resolver.Resolver, kind, name string, policy Policy) (*Graph, resolver.Result, error) {
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

// split tells the packages that are in another graph, too, from the rest.
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

// kept are packages as what is installed, and no wish: they count when somebody is found
// to need them.
func (g *Graph) lockedPackages(nodes []int) []lockfile.Package {
	var out []lockfile.Package
	for _, i := range nodes {
		if n := g.nodes[i]; g.byRepository[n.Repository][0] == i && !n.Digest.IsZero() {
			out = append(out, n.locked())
		}
	}
	return out
}

// met are the packages of a solution that are there, and not among those that it was
// made for.
func (g *Graph) existing(own *Graph, r resolver.Result) []int {
	var out []int
	for _, p := range r.Packages {
		if _, known := own.Find(p.Repository); !known {
			out = append(out, g.byRepository[p.Repository]...)
		}
	}
	return out
}
