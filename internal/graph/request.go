package graph

import (
	"cmp"
	"slices"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
	"github.com/xpkg-dev/xpkg/pkg/solver"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// Policy is the policy for changing the versions of installed dependencies (packages guide, "Dependencies").
type Policy string

// Policies. None keeps every version. The others change packages that were installed as dependencies: only to
// newer versions, or also to older ones.
const (
	None               Policy = "None"
	Upgrade            Policy = "Upgrade"
	UpgradeOrDowngrade Policy = "UpgradeOrDowngrade"
)

// AnnotationUpgrades on the Lock is the policy of the manager.
const AnnotationUpgrades = "xpkg.dev/dependency-upgrades"

// Policies returns all policies.
func Policies() []Policy { return []Policy{None, Upgrade, UpgradeOrDowngrade} }

func (p Policy) moves() solver.Moves {
	switch p {
	case Upgrade:
		return solver.Upward
	case UpgradeOrDowngrade:
		return solver.Freely
	}
	return solver.Never
}

// Request returns the request to the resolver that satisfies the dependencies of every package in the graph. Packages
// that a user installed keep their versions, unless they follow their dependents; dependencies keep theirs if they fit,
// and paused packages always do.
func (g *Graph) Request(policy Policy) resolver.Request {
	// A package that must move gets the nearest suitable version, which is the smallest change.
	q := resolver.Request{Moves: policy.moves(), Nearest: true}
	vain := g.unrequired(Node.requiredDependencies)
	for _, n := range g.nodes {
		if first, _ := g.Find(n.Repository); first.Compare(n) != 0 {
			// The same package under two names: a second version is not an alternative, and its dependencies
			// still count.
			q.Roots = append(q.Roots, g.rootsFor(n)...)
			continue
		}
		kept := n.locked()
		if n.Digest.IsZero() {
			// Its dependencies are read from the same location.
			q.Roots = append(q.Roots, dependency.Root{
				Package: kept.Repository, Constraint: kept.Version, Exact: true, By: n.objectName(),
			})
			continue
		}
		q.Locked = append(q.Locked, kept)
		orphan := slices.ContainsFunc(vain, func(o Node) bool { return o.Compare(n) == 0 })
		switch {
		case n.MayMove() && n.AutoInstalled && !orphan:
			// Its dependents require it.
		case n.MayMove() && !n.AutoInstalled && n.hasVersion():
			q.Roots = append(q.Roots, dependency.Root{Package: kept.Repository, Constraint: anyVersion, By: n.requester()})
		default:
			q.Roots = append(q.Roots, dependency.Root{
				Package: kept.Repository, Constraint: cmp.Or(kept.Version, kept.Pin()), Exact: true, By: n.requester(),
			})
		}
	}
	q.Roots = append(q.Roots, g.outsideRequirements...)
	return q
}

// anyVersion accepts every semantic version, also prereleases.
const anyVersion = ">=0.0.0-0"

// hasVersion reports whether the tag of a package is a semantic version, so that the package can move to
// another one.
func (n Node) hasVersion() bool {
	return version.ParseConstraint(anyVersion).Accepts(n.Version)
}

// locked returns the installed version of a package, with the dependencies that count.
func (n Node) locked() lockfile.Package {
	out := n.Package
	out.Dependencies = append(n.requiredDependencies(), n.optionalDependencies()...)
	return out
}

// rootsFor returns the dependencies of a package whose version is not selected by the solver.
func (g *Graph) rootsFor(n Node) []dependency.Root {
	var out []dependency.Root
	for _, d := range append(n.requiredDependencies(), n.optionalDependencies()...) {
		out = append(out, dependency.Root{
			Package: d.Package, Constraint: d.Constraint, Optional: d.Optional, By: n.objectName(),
		})
	}
	return out
}

// requester returns the package in the form of explanations.
func (n Node) requester() string {
	if n.Paused {
		return n.objectName() + " (paused)"
	}
	return n.objectName()
}

// objectName returns the object of a package in the form of commands.
func (n Node) objectName() string { return v1.ObjectName(n.Kind, n.Name) }
