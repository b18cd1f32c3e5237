package install

import (
	"context"
	"slices"

	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Group is a candidate together with the packages that dependency resolution installs or moves for it: all of them are
// installed, or none.
type Group struct {
	Candidate
	// Seen is the graph of the packages before the changes, and Place names repositories as in [graph.New].
	Seen  *graph.Graph
	Place func(repository string) string
	// Contents are the contents of packages that do not work yet. Check adds those of the group.
	Contents state.KnownContents
	// Changes are the installs and moves, and Additions their contents, in the same order.
	Changes   []graph.Change
	Additions []state.Addition
	// Holders are the owners of the existing objects, except for the packages of the group. Check adds to them.
	Holders plan.Holders
	// WasHealthy reports whether the candidate has been healthy with its content. A cycle is no reason to refuse it then.
	WasHealthy bool
}

// Check returns the graph after the changes, and the refusals of objects that can never be established: another package
// holds them, or two packages of the group contain them. It fails with DependencyCycle for kinds that the packages
// require of each other.
func (g Group) Check(ctx context.Context) (after *graph.Graph, refusals []plan.Refusal, err error) {
	added := make([][]plan.Ref, len(g.Changes))
	for i, a := range g.Additions {
		added[i] = slices.Concat(a.Objects, a.Composed)
		g.Contents.Known[g.Changes[i].To.Repository] = a.Package
	}
	after = graph.New(state.LinkKinds(ctx, graph.After(g.Seen.Nodes(), g.Changes), g.Contents), g.Place)
	if !g.WasHealthy {
		if err := after.CheckCycle(g.Package.PackageKind(), g.Package.GetName()); err != nil {
			return nil, nil, err
		}
	}
	composed, err := g.Objects.ComposedCRDs()
	if err != nil {
		return nil, nil, err
	}
	refusals = graph.Conflicts(
		g.Holders, revision.ObjectName(g.Package), slices.Concat(g.Objects.Refs(), composed), g.Changes, added,
	)
	graph.ExplainSwitch(g.Package, refusals)
	return after, refusals, nil
}
