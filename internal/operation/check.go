package operation

import (
	"context"
	"slices"
	"time"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/planner"
)

// Check fails if a package is not as it was planned with, before the first write, or if the removals have other
// consequences than those that a user was asked about.
func (o Operation) Check(ctx context.Context, steps []*Step) error {
	if !slices.ContainsFunc(steps, func(s *Step) bool { return s.Live != nil || s.Plan != nil }) {
		return nil
	}
	load := inventory.LoadPackages
	if o.comparesRemovals(steps) {
		load = inventory.LoadNamed
	}
	all, err := load(ctx, o.Client)
	if err != nil {
		return err
	}
	for _, s := range steps {
		if s.Same {
			if err := s.refresh(all.Named(s.Live)); err != nil {
				return err
			}
		}
		if s.Plan == nil || s.Plan.Operation == planner.Install {
			continue
		}
		if err := planner.MovedError(s.Plan, s.Plan.CheckPackage(all.Named(s.Live))); err != nil {
			return err
		}
	}
	if o.comparesRemovals(steps) {
		return o.checkRemovals(ctx, all, steps, steps)
	}
	return nil
}

// comparesRemovals reports whether steps remove packages that are compared with their plans. With --yes, the user
// agrees to all consequences of removals, but not to the removal of a package that is no orphan any more.
func (o Operation) comparesRemovals(steps []*Step) bool {
	return (!o.Yes || o.OnlyOrphans) && slices.ContainsFunc(steps, func(s *Step) bool { return s.Remove && s.Plan != nil })
}

// checkRemovals plans the removals among the rest of the steps again, and fails if they would delete more custom
// resources, or break other dependents, than their plans list, or if a dependency that they remove was installed
// explicitly or is required since: the user agreed to the plans alone. All are the installed packages.
func (o Operation) checkRemovals(ctx context.Context, all *inventory.Inventory, steps, rest []*Step) error {
	present := slices.DeleteFunc(slices.Clone(all.Packages), inventory.IsDeleting)
	all, err := o.AwaitNeeds(ctx, all, present)
	if err != nil {
		return err
	}
	again := map[*Step]*Step{}
	var removals []*Step
	for _, s := range rest {
		if !s.Remove || s.Plan == nil {
			continue
		}
		now := all.Named(s.Live)
		if now == nil || now.GetUID() != s.Live.GetUID() || inventory.IsDeleting(now) {
			continue // The manager can have deleted a dependency.
		}
		if err := planner.MovedError(s.Plan, planner.CheckDependency(s.Live, now)); err != nil {
			return err
		}
		again[s] = &Step{Live: s.Live, Remove: true, group: s.group, OnDelete: s.answer()}
		removals = append(removals, again[s])
	}
	if o.OnlyOrphans {
		if err := o.checkOrphans(ctx, all, removals); err != nil || o.Yes {
			return err
		}
	}
	if _, err := o.Plan(ctx, removals); err != nil {
		return err
	}
	// A dependent that the operation changes too was planned as it is afterwards.
	changes := func(b planner.Broken) bool {
		return slices.ContainsFunc(steps, func(s *Step) bool {
			return s.Live != nil && s.Live.PackageKind() == b.Kind && s.Live.GetName() == b.Name
		})
	}
	for _, s := range rest {
		if now := again[s]; now != nil {
			now.Plan.Breaks = slices.DeleteFunc(now.Plan.Breaks, changes)
			if err := planner.CheckConsequences(s.Plan, now.Plan); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkOrphans fails if a package that a step removes is no orphan any more, or if this is not known.
func (o Operation) checkOrphans(ctx context.Context, all *inventory.Inventory, removals []*Step) error {
	names, err := o.Orphans(ctx, all)
	if err != nil {
		return err
	}
	for _, s := range removals {
		if !slices.Contains(names, v1.ObjectName(s.Live.PackageKind(), s.Live.GetName())) {
			return planner.ErrPlanMoved.New(
				nil, "the plan to uninstall %s is stale: another package or an install object requires it now",
				inventory.ShortName(s.Live),
			)
		}
	}
	return nil
}

// Orphans returns the automatically installed packages that no package requires and no object of the first generation
// uses any more, as KIND/NAME.
func (e *Engine) Orphans(ctx context.Context, all *inventory.Inventory) ([]string, error) {
	uses, err := inventory.ReadUses(ctx, e.Client, e.Objects, e.Frontend)
	if err != nil {
		return nil, err
	}
	g, err := all.Graph(uses)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, o := range g.Orphans() {
		names = append(names, v1.ObjectName(o.Kind, o.Name))
	}
	return names, nil
}

// lockTime is the time in which the manager that runs adds a new revision to the Lock.
const lockTime = 5 * time.Second

// AwaitNeeds reads the packages again until the dependencies of the given ones are known: the manager adds a revision
// to the Lock after it has activated it. It returns what it knows when the time has passed.
func (e *Engine) AwaitNeeds(
	ctx context.Context, all *inventory.Inventory, packages []v1.Package,
) (*inventory.Inventory, error) {
	progress := e.Progress()
	defer progress.End()
	tick, deadline := time.NewTicker(pollInterval), time.After(lockTime)
	defer tick.Stop()
	for {
		unknown := slices.IndexFunc(packages, func(p v1.Package) bool { return !all.KnowsNeeds(p) })
		if unknown < 0 {
			return all, nil
		}
		progress.Set("waiting until the dependencies of %s are known", inventory.ShortName(packages[unknown]))
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-deadline:
			return all, nil
		case <-tick.C:
		}
		var err error
		if all, err = inventory.LoadNamed(ctx, e.Client); err != nil {
			return nil, err
		}
	}
}
