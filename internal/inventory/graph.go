package inventory

import (
	"cmp"
	"slices"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/frontend"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// ErrNeedsUnknown is the code for a Lock without the dependencies of a package.
var ErrNeedsUnknown = errcode.Code{
	Name: "NeedsUnknown", Class: errcode.Unavailable,
	Cause: "The Lock of the cluster does not contain the dependencies of a package, so unneeded dependencies are not known.",
	Fix:   "Wait until the package is installed, or uninstall it. The manager updates the Lock.",
}

// Graph returns all packages with their dependencies in the Lock. The Providers that objects of the first generation
// use are in use.
func (i *Inventory) Graph(uses frontend.Uses) (*graph.Graph, error) {
	var nodes []graph.Node
	for _, p := range i.Packages {
		needs, known := graph.LockedDependencies(p, i.Lock.Packages)
		n, ok := graph.NodeFromPackage(p, needs)
		if !ok {
			continue // It is being deleted, or cannot be required by a package.
		}
		if !known {
			return nil, ErrNeedsUnknown.New(nil, "the Lock has no entry for %s at %s", ShortName(p), p.PackageSpec().Package)
		}
		nodes = append(nodes, n)
	}
	uses.Mark(nodes)
	return graph.New(nodes, nil), nil
}

// Entry returns the entry of a revision in the Lock, or an empty one.
func (i *Inventory) Entry(revision string) v1beta1.LockPackage {
	if i.entries == nil {
		i.entries = map[string]v1beta1.LockPackage{}
		for _, e := range i.Lock.Packages {
			i.entries[e.Name] = e
		}
	}
	return i.entries[revision]
}

// FromRepository returns the package that is installed from a repository, or nil if there is none. Of several packages,
// it prefers the one that spells the repository in the same way.
func (i *Inventory) FromRepository(repository string) v1.Package {
	if i.byRepository == nil {
		i.byRepository = map[string]v1.Package{}
		for _, p := range i.Packages {
			i.byRepository[i.location(RepositoryOf(p))] = p
		}
		for _, p := range i.Packages {
			i.byRepository[RepositoryOf(p)] = p
		}
	}
	return cmp.Or(i.byRepository[repository], i.byRepository[i.location(repository)])
}

// Dependents returns the packages with a direct dependency on a package, as KIND/NAME. It ignores optional
// dependencies.
func (i *Inventory) Dependents(p v1.Package) []string {
	out := []string{}
	for _, e := range i.Lock.Packages {
		requires := slices.ContainsFunc(e.Dependencies, func(d v1beta1.Dependency) bool { return i.IsFrom(p, d.Package) })
		if by := i.FromRepository(e.Source); requires && by != nil {
			out = append(out, ShortName(by))
		}
	}
	for _, x := range i.Packages {
		if slices.ContainsFunc(graph.KindProviders(x), func(d dependency.Dependency) bool { return i.IsFrom(p, d.Package) }) {
			out = append(out, ShortName(x))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Needs returns the packages that a package needs, by their names according to the Lock entry of its revision, and for
// the kinds that they provide.
func (i *Inventory) Needs(p v1.Package, revision string) []dependency.Need {
	all := graph.DependenciesFromLock(i.Entry(revision))
	if !p.PackageSpec().SkipDependencyResolution {
		all = append(all, graph.KindProviders(p)...)
	}
	return dependency.Needs(all)
}

// Closure returns the installed packages in the form of a lock file. Its roots are the explicitly installed packages.
func (i *Inventory) Closure() lockfile.File {
	var f lockfile.File
	needs := map[string][]dependency.Dependency{}
	for _, e := range i.Lock.Packages {
		needs[e.Name] = graph.DependenciesFromLock(e)
	}
	for _, x := range i.Packages {
		ref, err := oci.ParseReference(x.PackageSpec().Package, oci.ParseOptions{})
		if err != nil {
			continue
		}
		p := lockfile.Package{
			Repository: ref.Name(), Version: ref.Tag, Digest: ref.Digest, Kind: xpkg.Kind(x.PackageKind()),
			Dependencies: needs[x.PackageStatus().CurrentRevision],
		}
		if d, err := oci.ParseDigest(x.PackageStatus().ResolvedDigest); err == nil {
			p.Digest = d
		}
		p.Dependencies = slices.Concat(p.Dependencies, graph.KindProviders(x))
		if running := i.Entry(runningInstead(x)); running.Name != "" {
			p.Version, p.Digest, p.Dependencies = running.Version, oci.Digest{}, needs[running.Name]
		}
		f.Packages = append(f.Packages, p)
		if !graph.IsAutoInstalled(x) {
			f.Roots = append(f.Roots, dependency.Root{
				Package: p.Repository, Constraint: cmp.Or(p.Version, p.Digest.String()), Exact: true,
			})
		}
	}
	slices.SortFunc(f.Packages, func(a, b lockfile.Package) int { return cmp.Compare(a.Repository, b.Repository) })
	f.Packages = slices.CompactFunc(f.Packages, func(a, b lockfile.Package) bool { return a.Repository == b.Repository })
	return f
}

// runningInstead returns the revision of a package that was rolled back, or whose requested version the manager has not
// resolved: it is paused, the manager does not run, or the version does not exist. It returns "" for other packages.
func runningInstead(p v1.Package) string {
	status := p.PackageStatus()
	if status.CurrentIdentifier != "" && status.CurrentIdentifier != p.PackageSpec().Package {
		return status.CurrentRevision
	}
	return revision.PolicyOf(p).Back
}

// DependentsFirst returns all packages in an order in which each precedes its dependencies.
func (i *Inventory) DependentsFirst() []v1.Package {
	position := map[string]int{}
	closure := i.Closure()
	for at, p := range closure.InstallOrder() {
		position[p.Repository] = at + 1
	}
	out := slices.Clone(i.Packages)
	slices.SortStableFunc(out, func(a, b v1.Package) int {
		return cmp.Compare(position[RepositoryOf(b)], position[RepositoryOf(a)])
	})
	return out
}

// RemovalGroups returns packages in groups for their removal: the packages that require a package are in groups before
// it. Packages that require each other are in one group.
func (i *Inventory) RemovalGroups(packages []v1.Package) [][]v1.Package {
	closure := i.Closure()
	g, reach := closure.Graph(), map[v1.Package]map[string]bool{}
	rest := slices.DeleteFunc(i.DependentsFirst(), func(p v1.Package) bool { return !slices.Contains(packages, p) })
	for _, p := range rest {
		reach[p] = g.Reachable(RepositoryOf(p))
	}
	requires := func(x, p v1.Package) bool { return reach[x][RepositoryOf(p)] && !reach[p][RepositoryOf(x)] }
	split := func(unknown bool) (group, later []v1.Package) {
		for _, p := range rest {
			if unknown && graph.IsAutoInstalled(p) ||
				slices.ContainsFunc(rest, func(x v1.Package) bool { return requires(x, p) }) {
				later = append(later, p)
			} else {
				group = append(group, p)
			}
		}
		return group, later
	}
	var out [][]v1.Package
	for len(rest) > 0 {
		// Until the Lock contains an explicitly installed package, any dependency may belong to it.
		group, later := split(slices.ContainsFunc(
			rest, func(p v1.Package) bool { return !graph.IsAutoInstalled(p) && !i.KnowsNeeds(p) },
		))
		if len(group) == 0 {
			group, later = split(false)
		}
		out, rest = append(out, group), later
	}
	return out
}

// KnowsNeeds reports whether the dependencies of a package are known: the Lock contains its revision, or it has none.
func (i *Inventory) KnowsNeeds(p v1.Package) bool {
	_, known := graph.LockedDependencies(p, i.Lock.Packages)
	return known || p.PackageStatus().CurrentRevision == ""
}
