package graph

import (
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/solver"
)

// CheckCycle fails with DependencyCycle if a package depends on itself, directly or through installed packages. The
// error contains a shortest path.
func (g *Graph) CheckCycle(kind, name string) error {
	at := g.index(kind, name)
	if at < 0 {
		return nil
	}
	start := g.nodes[at]
	nodes := map[string]Node{start.Repository: start}
	for repository, all := range g.byRepository {
		if repository != start.Repository {
			nodes[repository] = g.nodes[all[0]]
		}
	}
	var all dependency.Graph
	for repository, n := range nodes {
		all.Add(repository, n.requiredDependencies()...)
	}
	var path []string
	for _, repository := range all.Cycle(start.Repository) {
		path = append(path, nodes[repository].nameAndVersion())
	}
	if path == nil {
		return nil
	}
	return solver.ErrCycle.New(&solver.Cycle{Path: path}, "dependency cycle")
}

// nameAndVersion returns the package with its version, as explanations name it.
func (n Node) nameAndVersion() string { return n.Repository + " " + n.VersionOrDigest() }

// WasHealthy reports whether a package has been healthy with one of its revisions. Such a package works even if others
// create a cycle through it.
func WasHealthy(p v1.Package, revision string) bool {
	a := p.PackageStatus().Activation
	return a != nil && a.Healthy && a.Revision == revision
}
