package planner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/internal/signature"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// planDependencies adds the dependencies of a package to the plan, the packages that are installed
// or moved for it, the packages whose requirements it would break, and the orphans. It returns the
// packages that the manager installs or moves. Kinds are dependencies on the packages that provide required kinds.
func (pl *planning) planDependencies(
	ctx context.Context, s *clusterState, p v1.Package, current v1.PackageRevision, content oci.Digest,
	dependencies, kinds []dependency.Dependency, out *Plan,
) ([]graph.Change, error) {
	others, err := pl.nodes(ctx, s, func(repository string) bool {
		return slices.ContainsFunc(
			slices.Concat(dependencies, kinds),
			func(d dependency.Dependency) bool { return s.sameRepository(oci.RepositoryName(d.Package), repository) },
		)
	})
	if err != nil {
		return nil, err
	}
	// No package can depend on a package without a repository.
	node, named := graph.NodeFromImage(p, p.PackageSpec().Package, content, dependencies)
	nodes := slices.Clone(others)
	if named {
		nodes = append(nodes, node)
	}
	g, cycle := pl.checkCycle(ctx, s, p, nodes, content)
	nodes, s.graph = g.Nodes(), g
	if named {
		out.Breaks = pl.breaks(s, g, &node)
	}
	if p.PackageSpec().SkipDependencyResolution {
		if cycle != nil {
			return nil, cycle
		}
		pl.recordOrphans(ctx, s, nodes, &node, nil, out)
		return nil, nil
	}
	all := slices.Concat(dependencies, kinds)
	for i, d := range g.Check(lockfile.Dependencies(all)) {
		x := Dependency{
			Package: d.Dependency.Package, Constraint: d.Dependency.Constraint, State: d.State, Optional: d.Dependency.Optional,
			Kind: all[i].Kind, CRD: all[i].CRD,
		}
		if d.State != graph.Missing && d.State != graph.Absent {
			x.Installed = d.Installed.Reference()
		}
		if x.State == graph.Satisfied && slices.Contains(s.released, all[i]) {
			x.State = graph.NotProvided
		}
		out.Dependencies = append(out.Dependencies, x)
	}
	if err := pl.checkSolvable(ctx, s, p, node, out); named && err != nil {
		return nil, err
	}
	if named {
		pl.findRemedy(ctx, s, p, current, g, out)
	}
	changes, err := pl.resolveDependencies(ctx, s, p, current, g, cycle, out)
	if err == nil && cycle != nil && len(changes) == 0 {
		return nil, cycle // Other versions of the dependencies do not avoid the cycle, or may not be selected.
	}
	pl.recordOrphans(ctx, s, nodes, &node, changes, out)
	out.Preconditions.Installed = installedOf(s.preconditions(out))
	return changes, err
}

// wasHealthyWith reports whether the package has been healthy with the given content.
func (s *clusterState) wasHealthyWith(content oci.Digest) bool {
	return s.live != nil && graph.CurrentDigest(s.live) == content &&
		graph.WasHealthy(s.live, s.live.PackageStatus().CurrentRevision)
}

// conflicts reports whether the package needs the dependency, and another version is installed.
func (d Dependency) conflicts() bool { return d.State == graph.Incompatible && !d.Optional }

// checkSolvable fails if an installed dependency does not match, and no version of the dependency
// could satisfy the package. It returns nil if the registry cannot be accessed.
func (pl *planning) checkSolvable(
	ctx context.Context, s *clusterState, p v1.Package, node graph.Node, out *Plan,
) error {
	if pl.Registry == nil || !slices.ContainsFunc(out.Dependencies, Dependency.conflicts) {
		return nil
	}
	alone := graph.New([]graph.Node{node}, s.place)
	_, _, err := alone.Resolve(ctx, alone.Resolver(pl.Registry, pl.finder(), p), p.PackageKind(), p.GetName(), graph.None)
	if err != nil && errcode.From(err).Code.Class == errcode.Conflict {
		return err
	}
	return nil
}

// findRemedy adds to the plan how the package and the installed ones fit together, if a dependency is incompatible and
// the manager moves none, or if the plan breaks dependents: the command that updates all of them, or the explanation of
// a version conflict. Without access to the registry, the remedy names no versions.
func (pl *planning) findRemedy(
	ctx context.Context, s *clusterState, p v1.Package, current v1.PackageRevision, g *graph.Graph, out *Plan,
) {
	waits := slices.ContainsFunc(out.Dependencies, Dependency.conflicts) &&
		graph.PolicyFor(pl.upgradePolicy(s), p, current) == graph.None
	if !waits && len(out.Breaks) == 0 {
		return
	}
	automatic := ""
	if waits {
		automatic = " To let the manager update dependencies, restart it with " +
			wording.RestartManager("--dependency-upgrades=Upgrade") + "; UpgradeOrDowngrade also moves them to older versions."
		out.Remedy = "Update the dependency with `xpkg update`." + automatic
	}
	if pl.Registry == nil {
		return
	}
	command := pl.updateTogether(ctx, s, p, g)
	switch {
	case command != "" && s.live != nil:
		out.Remedy = "Update them together with " + command + "." + automatic
	case command != "":
		out.Remedy = "Run " + command + " first." + automatic
	case waits:
		_, _, err := g.Resolve(
			ctx, g.Resolver(pl.Registry, pl.finder(), p), p.PackageKind(), p.GetName(), graph.UpgradeOrDowngrade,
		)
		if err == nil {
			return
		}
		if conflict := errcode.From(err); conflict.Code.Class == errcode.Conflict {
			out.Remedy = conflict.Error() + ". " + conflict.Do
		}
	}
}

// updateTogether returns the command that updates installed packages so that all fit together with a package, and the
// package itself if it is installed, or "" if there is no such command. It moves only packages that must move:
// dependencies to any version, or also packages that users installed, but then all only to newer versions.
func (pl *planning) updateTogether(ctx context.Context, s *clusterState, p v1.Package, g *graph.Graph) string {
	r := g.Resolver(pl.Registry, pl.finder(), p)
	own, result, err := g.ForUpdate(p.PackageKind(), p.GetName(), false).
		Resolve(ctx, r, p.PackageKind(), p.GetName(), graph.UpgradeOrDowngrade)
	if err != nil {
		own, result, err = g.ForUpdate(p.PackageKind(), p.GetName(), true).
			Resolve(ctx, r, p.PackageKind(), p.GetName(), graph.Upgrade)
	}
	if err != nil {
		return ""
	}
	var packages []string
	// Dependents come first: their new versions often accept both versions of a dependency.
	for _, c := range slices.Backward(own.Changes(result)) {
		if c.Existing != nil {
			packages = append(packages, updateArgument(c.Existing.Kind, c.Existing.Name, c.Reference()))
		}
	}
	if len(packages) == 0 {
		return ""
	}
	if s.live != nil {
		packages = append([]string{updateArgument(p.PackageKind(), p.GetName(), p.PackageSpec().Package)}, packages...)
	}
	return "`xpkg update " + strings.Join(packages, " ") + "`"
}

// updateArgument returns a package and its new reference in the form of an argument of xpkg update.
func updateArgument(kind, name, reference string) string {
	to := reference
	if ref, err := oci.ParseReference(reference, oci.ParseOptions{}); err == nil {
		to = cmp.Or(ref.Tag, ref.Digest.String())
	}
	return Package{Kind: kind, Name: name}.Short() + "@" + to
}

// resolveDependencies returns the packages that the manager installs with a package or moves for
// it, and adds them to the plan. It fails for a version conflict, with which the package could
// never become healthy. If the registry cannot be accessed, it adds a warning.
func (pl *planning) resolveDependencies(
	ctx context.Context, s *clusterState, p v1.Package, current v1.PackageRevision, g *graph.Graph, cycle error, out *Plan,
) ([]graph.Change, error) {
	out.Upgrades = pl.Upgrades
	policy := graph.PolicyFor(pl.upgradePolicy(s), p, current)
	unsatisfied := slices.ContainsFunc(out.Dependencies, func(d Dependency) bool {
		return d.State == graph.Missing || d.State == graph.Incompatible && policy != graph.None
	})
	// Other versions of the dependencies may avoid a cycle.
	unsatisfied = unsatisfied || cycle != nil && policy != graph.None
	if pl.Registry == nil || !unsatisfied {
		return nil, nil
	}
	own, result, err := state.ResolveProviders(ctx, g, g.Resolver(pl.Registry, pl.finder(), p),
		p.PackageKind(), p.GetName(), policy, func(ctx context.Context, c graph.Change) (*xpkg.Package, error) {
			return pl.additions(s).ReadChange(ctx, p, c)
		})
	switch {
	case err == nil:
	case errors.Is(err, provide.ErrNotProvided), signature.IsRefused(err):
		return nil, err
	case errcode.From(err).Code.Class == errcode.Conflict:
		if command := pl.updateTogether(ctx, s, p, g); command != "" {
			conflict := errcode.From(err)
			return nil, conflict.WithDo("Update them together with %s. %s", command, conflict.Do)
		}
		return nil, err
	default:
		out.warn(fmt.Sprintf("The packages that would be installed with it are not known: %v.", err))
		return nil, nil
	}
	for _, text := range result.Withdrawn {
		out.warn(text + ".")
	}
	changes := own.Changes(result)
	for _, c := range changes {
		a := AddedPackage{
			Kind: string(c.To.Kind), Reference: c.Reference(), Digest: c.To.Digest.String(), RequiredBy: c.RequiredBy,
		}
		if c.Existing != nil {
			a.Kind, a.Name, a.From = c.Existing.Kind, c.Existing.Name, c.Existing.Reference()
		}
		out.AddedPackages = append(out.AddedPackages, a)
	}
	return changes, nil
}

// upgradePolicy returns the upgrade policy: the assumed one, the one that the manager announces, or
// [graph.None].
func (pl *planning) upgradePolicy(s *clusterState) graph.Policy {
	for _, p := range []graph.Policy{pl.Upgrades, graph.Policy(s.lock.Annotations[graph.AnnotationUpgrades])} {
		if slices.Contains(graph.Policies(), p) {
			return p
		}
	}
	return graph.None
}
