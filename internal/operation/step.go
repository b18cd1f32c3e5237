package operation

import (
	"context"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/activation"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Plans returns the plans of steps.
func Plans(steps []*Step) []*planner.Plan {
	var out []*planner.Plan
	for _, s := range steps {
		if s.Plan != nil {
			out = append(out, s.Plan)
		}
	}
	return out
}

// Step is the change of one package in an operation.
type Step struct {
	// Locked is the package in the lock file of the operation, or nil.
	Locked *lockfile.Package
	// Live is the installed package, under any name, or nil; Want is the package to install, or nil.
	Live, Want v1.Package
	// Remove reports whether the package is uninstalled, and group is the number of its group among the removals: the
	// packages of a group are deleted when those of the groups before it, which may require them, are gone.
	Remove bool
	group  int
	// OnDelete answers what happens to the custom resources of a removed package. The zero value is the answer in its
	// annotations.
	OnDelete revision.OnDelete
	// asPlanned reports whether a dependency is only removed if it was not installed explicitly since.
	asPlanned bool
	// Plan is nil if nothing changes or no plan could be computed.
	Plan *planner.Plan
	// Same reports whether the package is already as it is wanted.
	Same bool
	// IsCarriedOut reports whether the transaction of the operation has carried out the step before the manager was
	// started again.
	IsCarriedOut bool
	// Adopt reports whether the user installs the package explicitly, which can be a dependency. A package that another
	// client has installed meanwhile from the wanted reference is kept.
	Adopt bool
	// RollsBack reports whether the package returns to a former version.
	RollsBack bool
	// isGone reports whether the removed package was deleted before.
	isGone bool
	// requiredBy are the repositories of the packages of the lock file that require this one, if it is no root.
	requiredBy []string
	// uses are the kinds that the wanted package uses, of an operation with several steps.
	uses activation.Uses
	// after are the steps that release objects which this step takes over.
	after []*Step
	// consents are the annotations that a transaction adds to an installed package.
	consents map[string]string
	// markDependency is the result of WillBeLabelled: the manager may remove a dependency that no package requires yet.
	markDependency bool
}

// Subject returns the package as it is installed, or as it is going to be.
func (s *Step) Subject() v1.Package {
	if s.Want == nil {
		return s.Live
	}
	return s.Want
}

// WillBeLabelled reports whether the package is labelled as a dependency once all packages exist.
func (s *Step) WillBeLabelled() bool { return s.markDependency }

// String describes the step with a verb.
func (s *Step) String() string {
	switch {
	case s.Remove:
		return "uninstall " + inventory.ShortName(s.Live)
	case s.Live != nil:
		return "update " + inventory.ShortName(s.Live) + " to " + s.Want.PackageSpec().Package
	}
	return "install " + inventory.ShortName(s.Want) + " from " + s.Want.PackageSpec().Package
}

// makePlan plans the step.
func (s *Step) makePlan(ctx context.Context, pl *planner.Planner, o planner.Options) (*planner.Plan, error) {
	if s.Remove {
		o.OnDelete = s.OnDelete
		return pl.Uninstall(ctx, s.Live, o)
	}
	p, err := pl.Install(ctx, s.Want, o)
	if err == nil {
		p.RollsBack = s.RollsBack
	}
	return p, err
}

// answer returns the answer with which the package is deleted. Without a plan, custom resources are not counted.
func (s *Step) answer() revision.OnDelete {
	if s.Plan == nil {
		return s.OnDelete
	}
	return s.Plan.OnDelete
}

// isDone reports whether nothing is to be planned: a deletion that has begun continues, and cannot be stopped.
func (s *Step) isDone() bool {
	return s.Same || s.IsCarriedOut || s.isGone || s.Remove && inventory.IsDeleting(s.Live)
}

// GoneSteps returns the steps of packages that were deleted before: they only appear in the result.
func GoneSteps(packages []v1.Package) []*Step {
	var out []*Step
	for _, p := range packages {
		out = append(out, &Step{Live: p, Remove: true, isGone: true})
	}
	return out
}

// follow returns the state after the step, which was planned in another state.
func (s *Step) follow(was planner.State) planner.State {
	if s.Remove {
		was.Removed = append(slices.Clone(was.Removed), s.Live)
		return was
	}
	was.Packages = append(slices.Clone(was.Packages), s.Want)
	was.Released = maps.Clone(was.Released)
	for _, c := range s.Plan.Objects.Changes {
		if c.Action == plan.Release {
			if was.Released == nil {
				was.Released = map[plan.Ref][]metav1.OwnerReference{}
			}
			was.Released[c.Ref] = c.Owners
		}
	}
	return was
}

// LockSteps returns the steps that make the installed packages equal to a lock file. Configure sets the fields of new
// packages.
func LockSteps(all *inventory.Inventory, f lockfile.File, configure func(v1.Package)) ([]*Step, error) {
	names := inventory.LockNames(f)
	var out []*Step
	for _, p := range f.InstallOrder() {
		s := &Step{Locked: &p, Live: all.Locked(p)}
		if !isRoot(f, p.Repository) {
			s.requiredBy = dependents(f, p.Repository)
		}
		if s.Live != nil {
			s.Want = s.Live.DeepCopyObject().(v1.Package)
			s.Same = isLocked(s.Live, p)
			if isRoot(f, p.Repository) {
				s.Same = s.Same && !graph.IsAutoInstalled(s.Live)
				graph.Adopt(s.Want)
			}
		} else {
			s.Want = v1.NewPackage(string(p.Kind))
			s.Want.SetName(names[p.Repository])
			configure(s.Want)
			if s.requiredBy != nil {
				graph.SetRequiredBy(s.Want, s.requiredBy)
			}
			if other := all.Named(s.Want); other != nil {
				return nil, InstalledOtherwise(other, p.Reference().String(), "")
			}
		}
		if !s.Same {
			s.Want.PackageSpec().Package = p.Reference().String()
		}
		graph.SetKindProviders(s.Want, kindProviders(p))
		s.markDependency = !isRoot(f, p.Repository) && graph.IsUnmarkedDependency(s.Want)
		out = append(out, s)
	}
	return out, nil
}

// RemovalSteps returns the steps that uninstall packages, dependents first. It waits until the dependencies of the
// packages are known, as [Engine.AwaitNeeds] does, and fails with PlanMoved if another client replaces or deletes one
// of them meanwhile.
func (e *Engine) RemovalSteps(ctx context.Context, all *inventory.Inventory, packages []v1.Package) ([]*Step, error) {
	now, err := e.AwaitNeeds(ctx, all, packages)
	if err != nil {
		return nil, err
	}
	packages = slices.Clone(packages)
	for i, p := range packages {
		if packages[i] = now.Named(p); packages[i] == nil || packages[i].GetUID() != p.GetUID() {
			return nil, changedMeanwhile(p)
		}
	}
	var out []*Step
	for i, group := range now.RemovalGroups(packages) {
		for _, p := range group {
			out = append(out, &Step{Live: p, Remove: true, group: i})
		}
	}
	return out, nil
}

// kindProviders returns the dependencies of a locked package on packages that provide kinds.
func kindProviders(p lockfile.Package) []dependency.Dependency {
	var out []dependency.Dependency
	for _, d := range p.Dependencies {
		if d.CRD != "" {
			out = append(out, d)
		}
	}
	return out
}

// isRoot reports whether a package of a lock file is a root.
func isRoot(f lockfile.File, repository string) bool {
	return slices.ContainsFunc(f.Roots, func(r dependency.Root) bool { return r.Package == repository && !r.Optional })
}

// dependents returns the repositories of the packages that require a package.
func dependents(f lockfile.File, repository string) []string {
	var out []string
	for _, by := range f.Graph().Dependents(repository) {
		out = append(out, by.From)
	}
	return out
}

// refresh sets the installed package of a step that changes nothing to its current state. It fails if the package has
// been changed or deleted since it was read.
func (s *Step) refresh(now v1.Package) error {
	if now == nil || now.GetUID() != s.Live.GetUID() || now.GetGeneration() != s.Live.GetGeneration() {
		return planner.ErrPlanMoved.New(
			nil, "another client has changed or deleted %s meanwhile", inventory.ShortName(s.Live),
		).WithDo("Nothing was written. Run the command again.")
	}
	s.Live = now
	return nil
}

// labelDependency labels a package as one that was installed as a dependency, unless a user has installed it explicitly
// since.
func labelDependency(ctx context.Context, cluster client.Client, p v1.Package) error {
	uid := p.GetUID()
	return patchMetadata(ctx, cluster, p, func() (map[string]any, error) {
		if p.GetUID() != uid || !graph.IsUnmarkedDependency(p) {
			return nil, nil
		}
		return map[string]any{"labels": map[string]any{graph.LabelAutoInstalled: "true"}}, nil
	})
}

// isLocked reports whether a package is installed in the locked version and with the locked content. Several versions
// can have one content, and dependents require a version.
func isLocked(live v1.Package, p lockfile.Package) bool {
	// ImageConfigs can rewrite the repository, and the same content can be in another one.
	installed, ok := inventory.InstalledReference(live)
	return ok && installed.Tag == p.Version && installed.Digest == p.Digest
}

// InstalledOtherwise fails when a package is being deleted, or when it is not what the reference asks for.
// OrElse is the alternative to an update, if there is one.
func InstalledOtherwise(live v1.Package, asked, orElse string) error {
	if err := inventory.CheckNotDeleting(live); err != nil {
		return err
	}
	is := live.PackageSpec().Package
	if is == asked || isInstalled(live, asked) {
		return nil
	}
	return ErrInstalledOtherwise.New(nil, "%s is installed from %s, not from %s", inventory.ShortName(live), is, asked).
		WithDo("Update it with `xpkg update %s %s`%s.", inventory.ShortName(live), wording.ShellWord(asked), orElse)
}

// isInstalled reports whether a package is what the reference asks for. Commands that pin a package add the digest to
// its reference.
func isInstalled(live v1.Package, asked string) bool {
	request, err := oci.ParseReference(asked, oci.ParseOptions{})
	installed, ok := inventory.InstalledReference(live)
	return err == nil && ok && installed.Satisfies(request)
}
