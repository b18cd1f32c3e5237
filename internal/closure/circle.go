package closure

import (
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/solve"
)

// Circle fails with DependencyCycle when a package needs itself, directly or through
// others that are there. The path is a shortest one.
func (g *Graph) Circle(kind, name string) error {
	at := g.index(kind, name)
	if at < 0 {
		return nil
	}
	if path := g.circle(g.nodes[at]); path != nil {
		return solve.ErrCycle.New(&solve.Cycle{Path: path}, "dependencies go in a circle")
	}
	return nil
}

func (g *Graph) circle(start Node) []string {
	from := map[string]Node{} // by the repository of who is needed
	for queue := []Node{start}; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		for _, d := range n.needs() {
			if _, seen := from[d.Package]; seen {
				continue
			}
			from[d.Package] = n
			if d.Package == start.Package.Package {
				return g.wayBack(start, from)
			}
			if to, ok := g.Find(d.Package); ok {
				queue = append(queue, to)
			}
		}
	}
	return nil
}

// wayBack is the way that led from a package to itself.
func (g *Graph) wayBack(start Node, from map[string]Node) []string {
	path := []string{start.title()}
	for n := from[start.Package.Package]; ; n = from[n.Package.Package] {
		path = append([]string{n.title()}, path...)
		if n.Compare(start) == 0 {
			return path
		}
	}
}

// title is the package with its version, as explanations name it.
func (n Node) title() string { return n.Package.Package + " " + n.At() }

// Proven reports whether a package has been healthy as one of its revisions. Then it
// works, whoever closes a circle around it.
func Proven(p v1.Package, revision string) bool {
	a := p.PackageStatus().Activation
	return a != nil && a.Healthy && a.Revision == revision
}
