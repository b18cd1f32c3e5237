package dependency

import (
	"iter"
	"slices"
)

// Graph is a set of packages and the dependencies between them. Packages are identified by
// their normalized names. A dependency can lead to a package that is not in the graph. The
// zero value is an empty graph.
//
// The results depend only on the order in which packages and dependencies were added. An
// optional dependency is an edge like any other: a caller that does not follow it does not
// add it.
type Graph struct {
	packages []string
	// dependencies are the edges from each package of the graph.
	dependencies map[string][]Dependency
	// dependents are the edges to each name.
	dependents map[string][]Edge
}

// Edge is a dependency with the package that has it.
type Edge struct {
	From string
	Dependency
}

// Add adds a package, unless it is in the graph, and its dependencies.
func (g *Graph) Add(pkg string, dependencies ...Dependency) {
	if g.dependencies == nil {
		g.dependencies, g.dependents = map[string][]Dependency{}, map[string][]Edge{}
	}
	if !g.Contains(pkg) {
		g.packages = append(g.packages, pkg)
	}
	g.dependencies[pkg] = append(g.dependencies[pkg], dependencies...)
	for _, d := range dependencies {
		g.dependents[d.Package] = append(g.dependents[d.Package], Edge{pkg, d})
	}
}

// Contains reports whether a package was added.
func (g *Graph) Contains(pkg string) bool {
	_, ok := g.dependencies[pkg]
	return ok
}

// Packages returns the packages in the order in which they were added.
func (g *Graph) Packages() []string { return g.packages }

// Dependencies returns the dependencies of a package in the order in which they were added.
func (g *Graph) Dependencies(pkg string) []Dependency { return g.dependencies[pkg] }

// Dependents returns the dependencies on a package, which does not have to be in the graph,
// in the order in which they were added.
func (g *Graph) Dependents(pkg string) []Edge { return g.dependents[pkg] }

// Roots returns packages from which every package is reachable: those without dependents,
// and then, as long as a cycle is not reachable, the first package that is not.
func (g *Graph) Roots() []string {
	var out []string
	for _, pkg := range g.packages {
		if len(g.dependents[pkg]) == 0 {
			out = append(out, pkg)
		}
	}
	reached := g.Reachable(out...)
	for _, pkg := range g.packages {
		if !reached[pkg] {
			out = append(out, pkg)
			g.reach(pkg, reached)
		}
	}
	return out
}

// Reachable returns the given packages and everything that they depend on, directly or not,
// including packages that are not in the graph.
func (g *Graph) Reachable(from ...string) map[string]bool {
	reached := map[string]bool{}
	for _, pkg := range from {
		g.reach(pkg, reached)
	}
	return reached
}

// reach adds a package and everything that it depends on to a set that already contains the
// dependencies of its members.
func (g *Graph) reach(pkg string, reached map[string]bool) {
	g.walk([]string{pkg}, reached, g.requirements)
}

// requirements returns the names of the direct dependencies of a package.
func (g *Graph) requirements(pkg string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, d := range g.dependencies[pkg] {
			if !yield(d.Package) {
				return
			}
		}
	}
}

// walk adds everything that is connected with the given packages to a set, breadth first.
func (g *Graph) walk(from []string, seen map[string]bool, next func(string) iter.Seq[string]) {
	var queue []string
	add := func(pkg string) {
		if !seen[pkg] {
			seen[pkg] = true
			queue = append(queue, pkg)
		}
	}
	for _, pkg := range from {
		add(pkg)
	}
	for ; len(queue) > 0; queue = queue[1:] {
		for pkg := range next(queue[0]) {
			add(pkg)
		}
	}
}

// Orphans returns the packages of the graph that are not reachable from any of the given
// ones.
func (g *Graph) Orphans(roots ...string) []string {
	reached := g.Reachable(roots...)
	return slices.DeleteFunc(slices.Clone(g.packages), func(pkg string) bool { return reached[pkg] })
}

// Component returns the given packages and everything that is connected with them by
// dependencies in any direction, including packages that are not in the graph: such a
// package connects its dependents.
func (g *Graph) Component(of ...string) map[string]bool {
	seen := map[string]bool{}
	g.walk(of, seen, func(pkg string) iter.Seq[string] {
		return func(yield func(string) bool) {
			for name := range g.requirements(pkg) {
				if !yield(name) {
					return
				}
			}
			for _, e := range g.dependents[pkg] {
				if !yield(e.From) {
					return
				}
			}
		}
	})
	return seen
}
