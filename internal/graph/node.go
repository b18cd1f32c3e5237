package graph

import (
	"cmp"
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Node is a package of the control plane.
type Node struct {
	// Kind and Name are the kind and name of the package object.
	Kind, Name string
	// Package is the installed version: repository, tag, digest, and dependencies. The dependencies are empty while the
	// content is not known.
	lockfile.Package
	// Requested is the reference in the spec. It differs from the installed version after a rollback.
	Requested string
	// Running are the versions whose objects may exist in the cluster, see [Running].
	Running []Version
	// SkipDependencies reports whether the dependencies of the package are not resolved: no version is selected for them.
	// They are no orphans, and the package still counts as a dependency of others.
	SkipDependencies bool
	// AutoInstalled reports whether the package was installed only as a dependency.
	AutoInstalled bool
	// InUse reports whether an object that is no package, such as an install object, uses the package.
	InUse bool
	// FollowsDependents reports whether the user who installed the package lets its version follow its dependents.
	FollowsDependents bool
	// Paused reports whether reconciliation of the package is paused.
	Paused bool
	// Pending reports whether the package has reported that it is not ready, and no object of it was written yet.
	Pending bool
}

// MayMove reports whether the version of the package may be changed for the packages that depend on it, as
// far as the policy allows.
func (n Node) MayMove() bool {
	return !n.Paused && (n.AutoInstalled || n.FollowsDependents)
}

// requiredDependencies returns the required dependencies that are resolved.
func (n Node) requiredDependencies() []dependency.Dependency {
	if n.SkipDependencies {
		return nil
	}
	return dependency.Required(n.Dependencies)
}

// optionalDependencies returns the optional dependencies that are resolved.
func (n Node) optionalDependencies() []dependency.Dependency {
	if n.SkipDependencies {
		return nil
	}
	return dependency.Optional(n.Dependencies)
}

// Compare orders nodes by kind and name.
func (n Node) Compare(other Node) int {
	return cmp.Or(cmp.Compare(n.Kind, other.Kind), cmp.Compare(n.Name, other.Name))
}

// Graph contains all packages of a control plane, or a component of them.
type Graph struct {
	nodes []Node
	// byRepository lists the packages of a repository. Usually there is one; if there are more, the first one represents
	// it: one whose objects are in the cluster, and of several the first one by kind and name.
	byRepository map[string][]int
	// byLocation maps locations to the repositories that are read there; locate computes the location, and locations keeps
	// those of the repositories in the graph.
	byLocation, locations map[string]string
	locate                func(repository string) string
	// outsideRequirements are constraints of packages outside of the graph on packages that are not installed and may be
	// added.
	outsideRequirements []dependency.Root
}

// New returns the graph of packages, independent of their order. From returns the location from which a
// repository is read, so that a package is found under each of its names; nil means [oci.RepositoryLocation].
func New(nodes []Node, from func(repository string) string) *Graph {
	if from == nil {
		from = oci.RepositoryLocation
	}
	g := &Graph{
		nodes: slices.SortedFunc(slices.Values(nodes), Node.Compare), byRepository: map[string][]int{},
		byLocation: map[string]string{}, locations: map[string]string{}, locate: from,
	}
	for i, n := range g.nodes {
		g.byRepository[n.Repository] = append(g.byRepository[n.Repository], i)
		if place := g.record(n.Repository); g.byLocation[place] == "" {
			g.byLocation[place] = n.Repository
		}
	}
	for _, at := range g.byRepository {
		slices.SortStableFunc(at, func(a, b int) int { return compareRunning(g.nodes[a], g.nodes[b]) })
	}
	for i := range g.nodes {
		needs := slices.Clone(g.nodes[i].Dependencies)
		for j := range needs {
			g.record(needs[j].Package)
			needs[j].Package = g.Name(needs[j].Package)
		}
		g.nodes[i].Dependencies = needs
	}
	return g
}

// compareRunning orders packages whose objects may be in the cluster before others, such as a second package of the
// same repository, which cannot get the objects of the first one.
func compareRunning(a, b Node) int {
	switch {
	case len(a.Running) > 0 && len(b.Running) == 0:
		return -1
	case len(a.Running) == 0 && len(b.Running) > 0:
		return 1
	}
	return 0
}

// Name returns the name of a repository in the graph: the name under which the package is installed, if it is
// installed.
func (g *Graph) Name(repository string) string {
	if len(g.byRepository[repository]) > 0 {
		return repository
	}
	return cmp.Or(g.byLocation[g.location(repository)], repository)
}

// record records the location of a repository of the graph, and returns it.
func (g *Graph) record(repository string) string {
	if _, known := g.locations[repository]; !known {
		g.locations[repository] = g.locate(repository)
	}
	return g.locations[repository]
}

// location returns the location from which a repository is read.
func (g *Graph) location(repository string) string {
	if known, ok := g.locations[repository]; ok {
		return known
	}
	return g.locate(repository)
}

// Find returns the package of a repository.
func (g *Graph) Find(repository string) (Node, bool) {
	at := g.byRepository[repository]
	if len(at) == 0 {
		return Node{}, false
	}
	return g.nodes[at[0]], true
}

// Nodes returns all packages, ordered by kind and name.
func (g *Graph) Nodes() []Node { return g.nodes }
