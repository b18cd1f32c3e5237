package operation

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/planner"
)

// SavedSteps returns the steps that carry out saved plans in their order, and each plan that is not carried out yet by its step.
func (e *Engine) SavedSteps(ctx context.Context, all *inventory.Inventory, plans []*planner.Plan) (steps []*Step, pending map[*Step]*planner.Plan, err error) {
	pending = map[*Step]*planner.Plan{}
	var gone []v1.Package
	removals := map[types.UID]*planner.Plan{}
	for _, p := range plans {
		want := v1.NewPackage(p.Package.Kind)
		want.SetName(p.Package.Name)
		live := all.Named(want)
		isApplied, err := p.IsApplied(live)
		if err != nil {
			return nil, nil, err
		}
		if p.Operation == planner.Uninstall {
			if !isApplied {
				gone, removals[live.GetUID()] = append(gone, live), p
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
	last, err := e.RemovalSteps(ctx, all, gone)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range last {
		steps, pending[s] = append(steps, s), removals[s.Live.GetUID()]
	}
	return steps, pending, nil
}
