package graph

import "github.com/xpkg-dev/xpkg/pkg/lockfile"

// Dependent is a package that needs another one.
type Dependent struct {
	Node
	// Need is what it needs of the other one.
	Dependency lockfile.Dependency
}

// Dependents are the packages that need one of a repository, or work with it, by kind
// and name. What nothing is done about does not count.
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

// Accepts reports whether a version that is installed, or would be, is what somebody
// needs.
func Accepts(need lockfile.Dependency, v Version) bool { return v.satisfies(need.Constraint) }
