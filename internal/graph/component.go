package graph

import (
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
)

// Component returns the graph of the packages that are connected with one of them through dependencies, in any
// direction. A problem in one component does not affect others. Dependents of the same package belong together even if
// it is not installed; an optional dependency connects only with an installed package.
func (g *Graph) Component(kind, name string) *Graph {
	start := g.index(kind, name)
	if start < 0 {
		return New(nil, g.location)
	}
	return g.component([]int{start})
}

// index returns the index of the package of a kind and name, or -1 if there is none.
func (g *Graph) index(kind, name string) int {
	return slices.IndexFunc(g.nodes, func(n Node) bool { return n.Kind == kind && n.Name == name })
}

// component returns the graph of the packages that are connected with any of the given ones.
func (g *Graph) component(start []int) *Graph {
	var all dependency.Graph
	for _, n := range g.nodes {
		all.Add(n.Repository, g.links(n)...)
	}
	var repositories []string
	for _, i := range start {
		repositories = append(repositories, g.nodes[i].Repository)
	}
	connected := all.Component(repositories...)
	var in []Node
	conditions := slices.Clone(g.outsideRequirements)
	for _, n := range g.nodes {
		if connected[n.Repository] {
			in = append(in, n)
			continue
		}
		for _, d := range n.optionalDependencies() {
			if len(g.byRepository[d.Package]) == 0 {
				conditions = append(conditions, dependency.Root{
					Package: d.Package, Constraint: d.Constraint, Optional: true, By: n.objectName(),
				})
			}
		}
	}
	out := New(in, g.location)
	out.outsideRequirements = conditions
	return out
}

// links returns the dependencies of a package that connect it with others.
func (g *Graph) links(n Node) []dependency.Dependency {
	out := n.requiredDependencies()
	for _, d := range n.optionalDependencies() {
		if len(g.byRepository[d.Package]) > 0 {
			out = append(out, d)
		}
	}
	return out
}
