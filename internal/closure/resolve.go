package closure

import (
	"context"

	"github.com/xpkg-dev/xpkg/internal/lockfile"
	"github.com/xpkg-dev/xpkg/internal/resolve"
)

// Resolve finds one solution for a package and for all that have to do with it, and
// gives the graph of these. Who that is can turn out only with the solution: what is
// needed by a package that is not there yet may be there, under whatever name, for
// others.
func (g *Graph) Resolve(ctx context.Context, r *resolve.Resolver, kind, name string, policy Policy) (*Graph, resolve.Result, error) {
	own := g.Component(kind, name)
	for {
		inside, outside := g.split(own)
		q := own.Request(policy)
		q.Kept = append(q.Kept, g.kept(outside)...)
		result, err := r.Resolve(ctx, q)
		if err != nil {
			return own, result, err
		}
		met := g.met(own, result)
		if len(met) == 0 {
			return own, result, nil
		}
		own = g.around(append(inside, met...))
	}
}

// split tells the packages that are in another graph, too, from the rest.
func (g *Graph) split(own *Graph) (inside, outside []int) {
	in := map[string]bool{}
	for _, n := range own.nodes {
		in[n.short()] = true
	}
	for i, n := range g.nodes {
		if in[n.short()] {
			inside = append(inside, i)
		} else {
			outside = append(outside, i)
		}
	}
	return inside, outside
}

// kept are packages as what is installed, and no wish: they count when somebody is found
// to need them.
func (g *Graph) kept(nodes []int) []lockfile.Package {
	var out []lockfile.Package
	for _, i := range nodes {
		if n := g.nodes[i]; g.at[n.Package.Package][0] == i && !n.Digest.IsZero() {
			out = append(out, n.kept())
		}
	}
	return out
}

// met are the packages of a solution that are there, and not among those that it was
// made for.
func (g *Graph) met(own *Graph, r resolve.Result) []int {
	var out []int
	for _, p := range r.Packages {
		if _, known := own.Find(p.Package); !known {
			out = append(out, g.at[p.Package]...)
		}
	}
	return out
}
