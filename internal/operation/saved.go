package operation

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/planner"
)

// SavedSteps returns the steps that carry out saved plans in their order, and each plan that is not carried out yet by
// its step.
func (e *Engine) SavedSteps(
	ctx context.Context, all *inventory.Inventory, plans []*planner.Plan,
) (steps []*Step, pending map[*Step]*planner.Plan, err error) {
	pending = map[*Step]*planner.Plan{}
	var removed, deleted []v1.Package
	removals := map[types.UID]*planner.Plan{}
	for _, p := range plans {
		want := v1.NewPackage(p.Package.Kind)
		want.SetName(p.Package.Name)
		live := all.Named(want)
		isApplied, err := p.IsApplied(live)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case p.Operation == planner.Uninstall && live == nil:
			deleted = append(deleted, want)
			continue
		case p.Operation == planner.Uninstall:
			removed = append(removed, live)
			if !isApplied {
				removals[live.GetUID()] = p
			}
			continue
		}
		if want, err = p.Wanted(); err != nil {
			return nil, nil, err
		}
		s := &Step{Live: live, Want: want, Same: isApplied, RollsBack: p.RollsBack}
		s.markDependency = graph.IsUnmarkedDependency(want)
		if steps = append(steps, s); !isApplied {
			pending[s] = p
		}
	}
	last, err := e.RemovalSteps(ctx, all, removed)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range last {
		if p := removals[s.Live.GetUID()]; p != nil {
			pending[s], s.OnDelete = p, p.OnDelete
		}
	}
	return slices.Concat(steps, last, GoneSteps(deleted)), pending, nil
}
