package planner

import (
	"context"
	"fmt"
	"slices"

	"github.com/xpkg-dev/xpkg/internal/frontend"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
)

// Orphan is a package that was installed as a dependency and that no package requires any more.
type Orphan struct {
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Reference string `json:"reference"`
	// Removed reports that the manager deletes the orphan, unless it has custom resources.
	Removed bool `json:"removed,omitempty"`
}

// recordOrphans adds to the plan the packages that become orphans by the operation. Node is the package after the
// operation, or nil if the operation deletes it. The dependencies of other packages are read from the Lock; the manager
// deletes no orphan before it knows all dependencies.
func (pl *planning) recordOrphans(
	ctx context.Context, s *clusterState, others []graph.Node, node *graph.Node, changes []graph.Change, out *Plan,
) {
	out.Orphans = s.orphans(others, node, changes, frontend.Uses{})
	if len(out.Orphans) == 0 {
		return
	}
	uses, err := pl.Frontend.Uses(ctx, pl.Cluster, pl.Reader)
	if err != nil {
		out.warn(fmt.Sprintf(
			"Install objects and Packages that use packages which are no longer required are not known: %v.", err,
		))
	}
	out.Orphans = s.orphans(others, node, changes, uses)
}

// orphans returns the packages that become orphans by an operation, and that no object of the first generation uses.
func (s *clusterState) orphans(
	others []graph.Node, node *graph.Node, changes []graph.Change, uses frontend.Uses,
) []Orphan {
	if s.live == nil {
		return nil
	}
	var before []graph.Node
	if was, ok := s.liveNode(); ok {
		before = append(before, was)
	}
	after := withChanges(others, changes)
	if node != nil {
		after = append(after, *node)
	}
	existing := s.orphanNodes(append(before, others...), uses)
	removed := s.lock.Annotations[graph.AnnotationRemovalPolicy] == string(graph.RemoveOrphans)
	var out []Orphan
	for _, n := range s.orphanNodes(after, uses) {
		if !slices.ContainsFunc(existing, func(o graph.Node) bool { return o.Compare(n) == 0 }) {
			out = append(out, Orphan{Kind: n.Kind, Name: n.Name, Reference: n.Reference(), Removed: removed})
		}
	}
	return out
}

// withChanges returns nodes after changes.
func withChanges(nodes []graph.Node, changes []graph.Change) []graph.Node {
	out := slices.Clone(nodes)
	for _, c := range changes {
		if c.Existing == nil {
			out = append(out, graph.Node{Kind: string(c.To.Kind), Package: c.To, AutoInstalled: true})
			continue
		}
		for i := range out {
			if out[i].Compare(*c.Existing) == 0 {
				out[i].Package = c.To
			}
		}
	}
	return out
}

// orphanNodes returns the orphans among nodes that no object of the first generation uses. As in the manager, optional
// dependencies count as required.
func (s *clusterState) orphanNodes(nodes []graph.Node, uses frontend.Uses) []graph.Node {
	nodes = slices.Clone(nodes)
	uses.Mark(nodes)
	for i := range nodes {
		nodes[i].Dependencies = slices.Clone(nodes[i].Dependencies)
		for j := range nodes[i].Dependencies {
			nodes[i].Dependencies[j] = dependency.Dependency{Package: nodes[i].Dependencies[j].Package}
		}
	}
	return graph.New(nodes, s.place).Orphans()
}
