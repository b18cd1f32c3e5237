package closure

import "github.com/xpkg-dev/xpkg/internal/lockfile"

// Dependent is a package that needs another one.
type Dependent struct {
	Node
	// Need is what it needs of the other one.
	Need lockfile.Dependency
}

// Dependents are the packages that need one of a repository, or work with it, by kind
// and name. What nothing is done about does not count.
func (g *Graph) Dependents(repository string) []Dependent {
	var out []Dependent
	place := g.from(repository)
	for _, n := range g.nodes {
		for _, d := range append(n.needs(), n.suits()...) {
			if d.Package == repository || g.from(d.Package) == place {
				out = append(out, Dependent{n, d})
			}
		}
	}
	return out
}

// Accepts reports whether a version that is installed, or would be, is what somebody
// needs.
func Accepts(need lockfile.Dependency, v Version) bool { return v.fits(need.Constraint) }
