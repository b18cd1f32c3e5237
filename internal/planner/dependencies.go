package planner

import (
	"context"
	"fmt"
	"slices"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// dependencies plans which dependencies of a package are installed, added and updated, and reports the packages whose
// requirements it would break. It returns the changes that the manager makes.
func (pl *Planner) dependencies(ctx context.Context, s *clusterState, p v1.Package, current v1.PackageRevision, content oci.Digest, dependencies []dependency.Dependency, out *Plan) ([]graph.Change, error) {
	others, err := pl.nodes(ctx, s, func(repository string) bool {
		return slices.ContainsFunc(dependencies, func(d dependency.Dependency) bool { return s.sameRepository(oci.RepositoryName(d.Package), repository) })
	})
	if err != nil {
		return nil, err
	}
	// No package can depend on one without a repository.
	node, named := graph.NodeFromImage(p, p.PackageSpec().Package, content, dependencies)
	nodes := slices.Clone(others)
	if named {
		nodes = append(nodes, node)
	}
	g := graph.New(nodes, s.place)
	var cycle error
	if !s.wasHealthyWith(content) {
		cycle = g.CheckCycle(p.PackageKind(), p.GetName())
	}
	if named {
		out.Breaks = pl.breaks(s, g, &node)
	}
	if p.PackageSpec().SkipDependencyResolution {
		if cycle != nil {
			return nil, cycle
		}
		out.Orphans = s.orphans(nodes, &node, nil)
		return nil, nil
	}
	for i, d := range g.Check(lockfile.Dependencies(dependencies)) {
		x := Dependency{Package: d.Dependency.Package, Constraint: d.Dependency.Constraint, State: d.State, Optional: d.Dependency.Optional, Kind: dependencies[i].Kind}
		if d.State != graph.Missing && d.State != graph.Absent {
			x.Installed = d.Installed.Reference()
		}
		out.Dependencies = append(out.Dependencies, x)
	}
	if err := pl.checkSolvable(ctx, s, p, node, out); named && err != nil {
		return nil, err
	}
	changes, err := pl.resolveDependencies(ctx, s, p, current, g, cycle, out)
	if err == nil && cycle != nil && len(changes) == 0 {
		return nil, cycle // No other versions of the dependencies avoid it, or none may be selected.
	}
	out.Orphans = s.orphans(nodes, &node, changes)
	out.Preconditions.Installed = s.preconditions(out)
	return changes, err
}

// wasHealthyWith reports whether the package has been healthy with some content.
func (s *clusterState) wasHealthyWith(content oci.Digest) bool {
	return s.live != nil && graph.CurrentDigest(s.live) == content && graph.WasHealthy(s.live, s.live.PackageStatus().CurrentRevision)
}

// checkSolvable fails if an installed dependency does not match, and the dependencies of the package have no solution
// with any version of it: no update of the dependency could satisfy the package. Without access to the registry, it
// returns nil.
func (pl *Planner) checkSolvable(ctx context.Context, s *clusterState, p v1.Package, node graph.Node, out *Plan) error {
	incompatible := slices.ContainsFunc(out.Dependencies, func(d Dependency) bool { return d.State == graph.Incompatible && !d.Optional })
	if pl.Registry == nil || !incompatible {
		return nil
	}
	alone := graph.New([]graph.Node{node}, s.place)
	_, _, err := alone.Resolve(ctx, alone.Resolver(pl.Registry, pl.finder(), p), p.PackageKind(), p.GetName(), graph.None)
	if err != nil && errcode.From(err).Code.Class == errcode.Conflict {
		return err
	}
	return nil
}

// resolveDependencies returns the packages that the manager installs with a package or moves for it.
// A conflict is a failure: the package could never become healthy. A registry that cannot be
// reached from here is noted in the plan.
func (pl *Planner) resolveDependencies(ctx context.Context, s *clusterState, p v1.Package, current v1.PackageRevision, g *graph.Graph, cycle error, out *Plan) ([]graph.Change, error) {
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
	own, result, err := g.Resolve(ctx, g.Resolver(pl.Registry, pl.finder(), p), p.PackageKind(), p.GetName(), policy)
	switch {
	case err == nil:
	case errcode.From(err).Code.Class == errcode.Conflict:
		return nil, err
	default:
		out.warn(fmt.Sprintf("The packages that would be installed with it are not known: %v.", err))
		return nil, nil
	}
	changes := own.Changes(result)
	for _, c := range changes {
		a := AddedPackage{Kind: string(c.To.Kind), Reference: c.Reference(), Digest: c.To.Digest.String(), RequiredBy: c.RequiredBy}
		if c.Existing != nil {
			a.Kind, a.Name, a.From = c.Existing.Kind, c.Existing.Name, c.Existing.Reference()
		}
		out.AddedPackages = append(out.AddedPackages, a)
	}
	return changes, nil
}

// upgradePolicy returns the upgrade policy of the manager, as far as it is known.
func (pl *Planner) upgradePolicy(s *clusterState) graph.Policy {
	for _, p := range []graph.Policy{pl.Upgrades, graph.Policy(s.lock.Annotations[graph.AnnotationUpgrades])} {
		if slices.Contains(graph.Policies(), p) {
			return p
		}
	}
	return graph.None
}
