package packages

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/cli/dependencies"
	"github.com/xpkg-dev/xpkg/internal/cli/selection"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/operation"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
)

// targets parses the packages of the command line. Each target has a name. It reads the cluster only if the meaning of
// an argument depends on the installed packages.
func (c *updateArgs) targets(env *terminal.Env, cluster connection.ClusterFlags) ([]inventory.Target, error) {
	var all *inventory.Inventory
	load := func() (err error) {
		if all == nil {
			_, all, err = selection.Read(env.Context, cluster, inventory.LoadPackages)
		}
		return err
	}
	var failed error
	targets, err := inventory.ParseTargets(c.Packages, func(name inventory.Name) bool {
		if failed = load(); failed != nil {
			return false
		}
		_, err := all.Find(name)
		return err == nil
	})
	if failed != nil {
		return nil, failed
	}
	if err != nil {
		return nil, terminal.ErrUsage.New(err, "cannot update these packages")
	}
	for i, t := range targets {
		if t.Name != "" {
			continue
		}
		if err := load(); err != nil {
			return nil, err
		}
		p, err := selection.Package(all, t)
		if err != nil {
			return nil, err
		}
		targets[i].Name = inventory.Name(inventory.ShortName(p))
	}
	return targets, nil
}

// missing returns the arguments that install the only package of the command line, which is not installed, or nil if no
// reference names it.
func (c *updateArgs) missing() *installArgs {
	targets, err := inventory.ParseTargets(c.Packages, func(inventory.Name) bool { return false })
	if err != nil || len(targets) != 1 || targets[0].Name != "" {
		return nil
	}
	return &installArgs{
		Kind: inventory.Kind(targets[0].Kind), Ref: targets[0].Ref,
		ManualActivation: c.ManualActivation != nil && *c.ManualActivation, RevisionHistoryLimit: c.RevisionHistoryLimit,
		PackagePullSecrets: c.PackagePullSecrets, PackagePullPolicy: c.PackagePullPolicy, RuntimeConfig: c.RuntimeConfig,
		SkipDependencyResolution: c.SkipDependencyResolution != nil && *c.SkipDependencyResolution,
		consents:                 c.consents, foreseenUpgradesFlag: c.foreseenUpgradesFlag,
	}
}

// steps returns the updates of the named packages, and of dependencies that have to move with them.
func (c *updateArgs) steps(
	env *terminal.Env, pl *clusterPlanner, f planFlags, all *inventory.Inventory, targets []inventory.Target,
) ([]*operation.Step, error) {
	versions, err := versionsOf(all, targets)
	if err != nil {
		return nil, err
	}
	var newest lockfile.File
	if !c.configures() && !c.given() &&
		slices.ContainsFunc(targets, func(t inventory.Target) bool { return t.Ref == "" }) {
		selected := map[string]string{}
		for p, version := range versions {
			selected[inventory.RepositoryOf(p)] = version
		}
		if newest, _, err = newestTogether(env, pl, f, all, selected); err != nil {
			return nil, err
		}
	}
	var out []*operation.Step
	for _, p := range slices.Backward(all.DependentsFirst()) {
		to, named := versions[p]
		if locked, ok := newest.Find(inventory.RepositoryOf(p)); ok && to == "" &&
			locked.Version != inventory.ShortVersion(p.PackageSpec().Package) {
			to = locked.Version
		}
		if !named && (to == "" || keepsVersion(env, p, to)) {
			continue
		}
		s := &operation.Step{Live: p, Want: p.DeepCopyObject().(v1.Package)}
		if err := moveTo(s.Want, to); err != nil {
			return nil, err
		}
		if named {
			if err := c.configure(s.Want); err != nil {
				return nil, err
			}
		}
		s.Same = !c.given() && equality.Semantic.DeepEqual(s.Live, s.Want)
		out = append(out, s)
	}
	return out, nil
}

// versionsOf returns the installed packages of targets, and the version of each target.
func versionsOf(all *inventory.Inventory, targets []inventory.Target) (map[v1.Package]string, error) {
	out := map[v1.Package]string{}
	for _, t := range targets {
		p, err := all.Find(t.Name)
		if err == nil {
			err = inventory.CheckNotDeleting(p)
		}
		if err != nil {
			return nil, err
		}
		if _, twice := out[p]; twice {
			return nil, terminal.ErrUsage.New(nil, "%s is given twice", inventory.ShortName(p)).WithDo("Name each package once.")
		}
		out[p] = t.Ref
	}
	return out, nil
}

// updateAll updates every package that a user installed to the newest version that fits together with all others.
func (c *updateArgs) updateAll(env *terminal.Env, r review, f planFlags) error {
	if len(c.Packages) > 0 || c.Version != "" || c.configures() {
		return terminal.ErrUsage.New(nil, "--all cannot be used with a package, a version or a flag that changes a package").
			WithDo("Update all packages with `xpkg update --all`, and change one with a second command.")
	}
	r.needsPlan = true
	var planner *clusterPlanner
	var installed *inventory.Inventory
	r.others = func(env *terminal.Env, names []string) ([]*operation.Step, error) {
		return c.steps(env, planner, f, installed, targetsOf(names))
	}
	return r.change(env, f, func(pl *clusterPlanner, all *inventory.Inventory) ([]*operation.Step, error) {
		planner, installed = pl, all
		if len(all.Packages) == 0 {
			fmt.Fprintln(env.Stderr, "No packages are installed.")
			return nil, nil
		}
		pl.assume(c.foreseenUpgradesFlag, c.consents)
		newest, others, err := newestTogether(env, pl, f, all, nil)
		if err != nil {
			return nil, r.adviseOthers(env, err, namesOf(all, others), r.planner(pl))
		}
		return updateSteps(env, all, newest)
	})
}

// newestTogether returns one solution with the newest versions of the selected packages, or of all that users
// installed, and prints notes about newer versions that are not in it. With an error, others are the repositories of
// the packages that can be updated without those that cause it.
func newestTogether(
	env *terminal.Env, pl *clusterPlanner, f planFlags, all *inventory.Inventory, selected map[string]string,
) (newest lockfile.File, others []string, err error) {
	finder, closer, err := dependencies.OpenFinder(env, f.ContentFlags, pl.Client, f.Namespace, all)
	if err != nil {
		return lockfile.File{}, nil, err
	}
	defer terminal.Close(&err, closer)
	newest, notes, others, err := finder.NewestTogether(env.Context, all, selected)
	view.Notes(env.Stderr, notes...)
	return newest, others, err
}

// targetsOf returns the packages with the names, to update to their newest versions.
func targetsOf(names []string) []inventory.Target {
	out := make([]inventory.Target, 0, len(names))
	for _, name := range names {
		out = append(out, inventory.Target{Name: inventory.Name(name)})
	}
	return out
}

// namesOf returns the names of the installed packages of repositories.
func namesOf(all *inventory.Inventory, repositories []string) []string {
	var out []string
	for _, repository := range repositories {
		if p := all.FromRepository(repository); p != nil {
			out = append(out, inventory.ShortName(p))
		}
	}
	return out
}

// keepsVersion reports whether an install object selects the version of a package that could move to another one, and
// prints a note then. Only the install object can move it.
func keepsVersion(env *terminal.Env, p v1.Package, to string) bool {
	by := p.GetAnnotations()[state.AnnotationInstalledBy]
	if by == "" || to == "" || to == inventory.ShortVersion(p.PackageSpec().Package) {
		return false
	}
	fmt.Fprintf(
		env.Stderr, "note: %s is not updated to %s: %s selects its version\n", inventory.ShortName(p), terminal.Safe(to),
		terminal.Safe(by),
	)
	return true
}

// updateSteps returns the updates of installed packages to the versions of a solution, dependencies first. The manager
// installs the dependencies that are missing.
func updateSteps(env *terminal.Env, all *inventory.Inventory, newest lockfile.File) ([]*operation.Step, error) {
	var out []*operation.Step
	for _, p := range newest.InstallOrder() {
		live := all.FromRepository(p.Repository)
		if live == nil {
			continue
		}
		if inventory.IsDeleting(live) {
			fmt.Fprintf(env.Stderr, "note: %s is being deleted\n", inventory.ShortName(live))
			continue
		}
		if keepsVersion(env, live, p.Version) {
			continue
		}
		s := &operation.Step{Live: live, Want: live.DeepCopyObject().(v1.Package)}
		if s.Same = p.Version == "" || p.Version == inventory.ShortVersion(live.PackageSpec().Package); !s.Same {
			to, err := updateTo(live.PackageSpec().Package, p.Version)
			if err != nil {
				return nil, err
			}
			s.Want.PackageSpec().Package = to
		} else if inventory.ReasonOf(live) == inventory.Dependency {
			continue
		}
		out = append(out, s)
	}
	return out, nil
}
