package graph

import (
	"github.com/xpkg-dev/xpkg/pkg/dependency"
)

// Dependent is a package with a dependency on another one.
type Dependent struct {
	Node
	// Dependency is the dependency on the other package.
	Dependency dependency.Dependency
}

// Dependents returns the packages that require a repository or constrain it, ordered by kind and name. Packages whose
// dependencies are skipped are not included.
func (g *Graph) Dependents(repository string) []Dependent {
	var out []Dependent
	place := g.locate(repository)
	for _, n := range g.nodes {
		for _, d := range append(n.requiredDependencies(), n.optionalDependencies()...) {
			if d.Package == repository || g.locate(d.Package) == place {
				out = append(out, Dependent{n, d})
			}
		}
	}
	return out
}

// Accepts reports whether a version satisfies a dependency.
func Accepts(need dependency.Dependency, v Version) bool { return v.satisfies(need.Constraint) }
