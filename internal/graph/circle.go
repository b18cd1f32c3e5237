package graph

import (
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/solver"
)

// CheckCycle fails with DependencyCycle when a package needs itself, directly or through
// others that are there. The path is a shortest one.
func (g *Graph) CheckCycle(kind, name string) error {
	at := g.index(kind, name)
	if at < 0 {
		return nil
	}
	if path := g.findCycle(g.nodes[at]); path != nil {
		return solver.ErrCycle.New(&solver.Cycle{Path: path}, "dependency cycle")
	}
	return nil
}

func (g *Graph) findCycle(start Node) []string {
	from := map[string]Node{} // by the repository of the dependency
	for queue := []Node{start}; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		for _, d := range n.requiredDependencies() {
			if _, seen := from[d.Package]; seen {
				continue
			}
			from[d.Package] = n
			if d.Package == start.Repository {
				return g.cyclePath(start, from)
			}
			if to, ok := g.Find(d.Package); ok {
				queue = append(queue, to)
			}
		}
	}
	return nil
}

// wayBack is the way that led from a package to itself.
func (g *Graph) cyclePath(start Node, from map[string]Node) []string {
	path := []string{start.nameAndVersion()}
	for n := from[start.Repository]; ; n = from[n.Repository] {
		path = append([]string{n.nameAndVersion()}, path...)
		if n.Compare(start) == 0 {
			return path
		}
	}
}

// title is the package with its version, as explanations name it.
func (n Node) nameAndVersion() string { return n.Repository + " " + n.VersionOrDigest() }

// WasHealthy reports whether a package has been healthy with one of its revisions. Such a package works even if others
// create a cycle through it.
func WasHealthy(p v1.Package, revision string) bool {
	a := p.PackageStatus().Activation
	return a != nil && a.Healthy && a.Revision == revision
}
