package packages

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// step is the change of one package in an operation.
type step struct {
	// locked is the package in the lock file of the operation, or nil.
	locked *lockfile.Package
	// live is the installed package, under any name, or nil; want is the package to install, or nil.
	live, want v1.Package
	// remove reports whether the package is uninstalled, and group is the number of its group among the removals: the packages of a group
	// are deleted when those of the groups before it, which may require them, are gone.
	remove bool
	group  int
	// asPlanned reports whether a dependency is only removed if it was not installed explicitly since.
	asPlanned bool
	// plan is nil if nothing changes or no plan could be computed.
	plan *planner.Plan
	// same reports whether the locked package is already installed.
	same bool
	// after are the steps that release objects which this step takes over.
	after []*step
	// markDependency reports whether the package is labelled as a dependency once all
	// packages exist: the manager may remove a dependency that no package requires yet.
	markDependency bool
}

// subject returns the package as it is installed, or as it is going to be.
func (s *step) subject() v1.Package {
	if s.want == nil {
		return s.live
	}
	return s.want
}

// String describes the step with a verb.
func (s *step) String() string {
	switch {
	case s.remove:
		return "uninstall " + inventory.ShortName(s.live)
	case s.live != nil:
		return "update " + inventory.ShortName(s.live) + " to " + s.want.PackageSpec().Package
	}
	return "install " + inventory.ShortName(s.want) + " from " + s.want.PackageSpec().Package
}

// makePlan plans the step.
func (s *step) makePlan(ctx context.Context, pl *clusterPlanner) (*planner.Plan, error) {
	if s.remove {
		return pl.Uninstall(ctx, s.live)
	}
	return pl.Install(ctx, s.want)
}

// lockSteps returns the steps that make the installed packages equal to a lock file. Configure sets the fields of new
// packages.
func lockSteps(all *inventory.Inventory, f lockfile.File, configure func(v1.Package)) ([]*step, error) {
	names := inventory.LockNames(f)
	var out []*step
	for _, p := range f.InstallOrder() {
		s := &step{locked: &p, live: all.Locked(p)}
		if s.live != nil {
			s.want = s.live.DeepCopyObject().(v1.Package)
			s.same = isLocked(s.live, p)
			if isRoot(f, p.Repository) {
				s.same = s.same && !graph.IsAutoInstalled(s.live)
				graph.Adopt(s.want)
			}
		} else {
			s.want = v1.NewPackage(string(p.Kind))
			s.want.SetName(names[p.Repository])
			configure(s.want)
			if !isRoot(f, p.Repository) {
				graph.SetRequiredBy(s.want, dependents(f, p.Repository))
			}
			if other := all.Named(s.want); other != nil {
				return nil, installedOtherwise(other, p.Reference().String(), "")
			}
		}
		if !s.same {
			s.want.PackageSpec().Package = p.Reference().String()
		}
		graph.SetKindProviders(s.want, kindProviders(p))
		s.markDependency = !isRoot(f, p.Repository) && graph.IsUnmarkedDependency(s.want)
		out = append(out, s)
	}
	return out, nil
}

// removals returns the steps that uninstall packages, dependents first.
func removals(all *inventory.Inventory, packages []v1.Package) []*step {
	var out []*step
	for i, group := range all.RemovalGroups(packages) {
		for _, p := range group {
			out = append(out, &step{live: p, remove: true, group: i})
		}
	}
	return out
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

// refresh sets the installed package of a step that changes nothing to its current state. It fails if the package has been changed or
// deleted since it was read.
func (s *step) refresh(now v1.Package) error {
	if now == nil || now.GetUID() != s.live.GetUID() || now.GetGeneration() != s.live.GetGeneration() {
		return planner.ErrPlanMoved.New(nil, "another client has changed or deleted %s meanwhile", inventory.ShortName(s.live)).WithDo("Nothing was written. Run the command again.")
	}
	s.live = now
	return nil
}

// labelDependency labels a package as one that was installed as a dependency, unless a user has installed it explicitly since. It reports
// whether the package has the label.
func labelDependency(ctx context.Context, cluster client.Client, p v1.Package) (labelled bool, err error) {
	uid := p.GetUID()
	err = inventory.PatchMetadata(ctx, cluster, p, func() (map[string]any, error) {
		if p.GetUID() != uid || !graph.IsUnmarkedDependency(p) {
			return nil, nil
		}
		return map[string]any{"labels": map[string]any{graph.LabelAutoInstalled: "true"}}, nil
	})
	return err == nil && p.GetUID() == uid && graph.IsAutoInstalled(p), err
}

// isLocked reports whether a package is installed in the locked version and with the locked content. Several versions can have one content,
// and dependents require a version.
func isLocked(live v1.Package, p lockfile.Package) bool {
	// ImageConfigs can rewrite the repository, and the same content can be in another one.
	installed, ok := inventory.InstalledReference(live)
	return ok && installed.Tag == p.Version && installed.Digest == p.Digest
}

// carryOut writes the package of a step. It returns the package before the write, or nil for a new one, and after it, and a word for the
// result.
func (s *step) carryOut(ctx context.Context, cluster client.Client) (before, after v1.Package, word string, err error) {
	word = "created"
	if s.live != nil {
		word = "updated"
	}
	switch {
	case s.same:
		word, err = repeat(ctx, cluster, s.live)
		return s.live, s.live, word, err
	case s.remove:
		return s.live, s.live, "deleted", s.delete(ctx, cluster)
	case s.plan != nil:
		before, after, err = carryOut(ctx, cluster, s.plan)
		return before, after, word, err
	}
	switch kind := s.want.GetObjectKind().GroupVersionKind(); {
	case s.live != nil:
		revision.RecordVersion(s.want, s.live.PackageSpec().Package, false)
		err := cluster.Update(ctx, s.want, client.FieldOwner(plan.FieldManager))
		s.want.GetObjectKind().SetGroupVersionKind(kind)
		return s.live, s.want, word, apiserver.Classify(err, "update %s", inventory.ShortName(s.want))
	default:
		err := cluster.Create(ctx, s.want, client.FieldOwner(plan.FieldManager))
		s.want.GetObjectKind().SetGroupVersionKind(kind)
		return nil, s.want, word, apiserver.Classify(err, "create %s", inventory.ShortName(s.want))
	}
}

// delete deletes the package. One that is gone meanwhile, such as a dependency that the manager has deleted, is no
// error.
func (s *step) delete(ctx context.Context, cluster client.Client) error {
	return apiserver.RetryOnConflict(func() error {
		now, err := inventory.Get(ctx, cluster, s.live.PackageKind(), s.live.GetName())
		if err != nil || now == nil || now.GetUID() != s.live.GetUID() || inventory.IsDeleting(now) {
			return err
		}
		moved := s.plan.CheckPackage(now)
		if s.asPlanned {
			moved = append(moved, planner.CheckDependency(s.live, now)...)
		}
		if err := planner.MovedError(s.plan, moved); err != nil {
			return err
		}
		return apiserver.Classify(deletePlanned(ctx, cluster, now), "%s %s", s.plan.Verb(), inventory.ShortName(now))
	})
}
