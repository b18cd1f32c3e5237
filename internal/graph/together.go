package graph

import "slices"

// ForUpdate returns the graph for the update of one package together with others: the package keeps its version, also
// if it is a dependency. With all, packages that users installed follow their dependents, too, unless they are paused.
func (g *Graph) ForUpdate(kind, name string, all bool) *Graph {
	out := *g
	out.nodes = slices.Clone(g.nodes)
	for i, n := range out.nodes {
		named := n.Kind == kind && n.Name == name
		out.nodes[i].AutoInstalled = n.AutoInstalled && !named
		out.nodes[i].FollowsDependents = (n.FollowsDependents || all) && !named
	}
	return &out
}
