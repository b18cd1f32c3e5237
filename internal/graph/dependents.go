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

// Dependents returns the packages that require a repository or constrain it, ordered by kind and name. It includes
// packages whose dependencies are not resolved.
func (g *Graph) Dependents(repository string) []Dependent {
	var out []Dependent
	place := g.location(repository)
	for _, n := range g.nodes {
		for _, d := range append(dependency.Required(n.Dependencies), dependency.Optional(n.Dependencies)...) {
			if g.location(d.Package) == place {
				out = append(out, Dependent{n, d})
			}
		}
	}
	return out
}

// WithDependents returns packages and all packages that require them, directly or through others, in an order in which
// each precedes its dependencies, except in cycles.
func (g *Graph) WithDependents(packages ...Node) []Node {
	var out []Node
	type object struct{ kind, name string }
	seen := map[object]bool{}
	var visit func(n Node)
	visit = func(n Node) {
		if seen[object{n.Kind, n.Name}] {
			return
		}
		seen[object{n.Kind, n.Name}] = true
		for _, d := range g.Dependents(n.Repository) {
			if !d.Dependency.Optional {
				visit(d.Node)
			}
		}
		out = append(out, n)
	}
	for _, n := range packages {
		visit(n)
	}
	return out
}

// Accepts reports whether a version satisfies a dependency.
func Accepts(need dependency.Dependency, v Version) bool { return v.satisfies(need.Constraint) }
