package graph

import (
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/lockfile"
)

// Component returns the graph of the packages that are connected with one of them through dependencies, in any
// direction. A problem in one component does not affect others. Dependents of the same package belong together even if
// it is not installed; an optional dependency connects only with an installed package.
func (g *Graph) Component(kind, name string) *Graph {
	start := g.index(kind, name)
	if start < 0 {
		return New(nil, g.locate)
	}
	return g.component([]int{start})
}

// index is where the package of a kind and name is; below zero for none.
func (g *Graph) index(kind, name string) int {
	return slices.IndexFunc(g.nodes, func(n Node) bool { return n.Kind == kind && n.Name == name })
}

// around returns the graph of the packages that are connected with any of the given ones.
func (g *Graph) component(start []int) *Graph {
	askers := map[string][]int{}
	for i, n := range g.nodes {
		for _, d := range g.links(n) {
			askers[d.Package] = append(askers[d.Package], i)
		}
	}
	seen, repositories := map[int]bool{}, map[string]bool{}
	for _, i := range start {
		seen[i] = true
	}
	for queue := start; len(queue) > 0; {
		n := g.nodes[queue[0]]
		queue = queue[1:]
		next := []string{n.Repository}
		for _, d := range g.links(n) {
			next = append(next, d.Package)
		}
		for _, repository := range next {
			if repositories[repository] {
				continue
			}
			repositories[repository] = true
			for _, i := range slices.Concat(g.byRepository[repository], askers[repository]) {
				if !seen[i] {
					seen[i] = true
					queue = append(queue, i)
				}
			}
		}
	}
	var in []Node
	conditions := slices.Clone(g.outsideRequirements)
	for i, n := range g.nodes {
		if seen[i] {
			in = append(in, n)
			continue
		}
		for _, d := range n.optionalDependencies() {
			if len(g.byRepository[d.Package]) == 0 {
				conditions = append(conditions, lockfile.Root{Package: d.Package, Constraint: d.Constraint, Optional: true, By: n.objectName()})
			}
		}
	}
	out := New(in, g.locate)
	out.outsideRequirements = conditions
	return out
}

// relations are the dependencies of a package that make it belong to others.
func (g *Graph) links(n Node) []lockfile.Dependency {
	out := n.requiredDependencies()
	for _, d := range n.optionalDependencies() {
		if len(g.byRepository[d.Package]) > 0 {
			out = append(out, d)
		}
	}
	return out
}
