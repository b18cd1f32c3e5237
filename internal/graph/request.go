package graph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
	"github.com/xpkg-dev/xpkg/pkg/solver"
)

// Policy says what may become of packages that are installed so that the needs of
// others are met (packages guide, "Dependencies").
type Policy string

// The policies. None lets every package at its version. The other two move those that
// were made for others: to newer versions only, or to older ones as well.
const (
	None               Policy = "None"
	Upgrade            Policy = "Upgrade"
	UpgradeOrDowngrade Policy = "UpgradeOrDowngrade"
)

// AnnotationUpgrades on the Lock has the policy of the package manager.
const AnnotationUpgrades = "xpkg.dev/dependency-upgrades"

// Policies are all of them.
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

// Request is what has to be resolved so that every package of the graph has what it
// needs. Packages that a person installed stay what they are; of those that were made
// for others the version stays wherever it fits, and that of one that is paused stays.
func (g *Graph) Request(policy Policy) resolver.Request {
	// A package that moves takes the nearest version that does: the smallest change.
	q := resolver.Request{Moves: policy.moves(), Nearest: true}
	vain := g.Orphans()
	for _, n := range g.nodes {
		if first, _ := g.Find(n.Repository); first.Compare(n) != 0 {
			// The same package under two names; a second version of it is no choice, and
			// what that needs still counts.
			q.Roots = append(q.Roots, g.rootsFor(n)...)
			continue
		}
		kept := n.locked()
		if n.Digest.IsZero() {
			// What it needs is read where it comes from.
			q.Roots = append(q.Roots, lockfile.Root{Package: kept.Repository, Constraint: kept.Version, Exact: true, By: n.objectName()})
			continue
		}
		q.Locked = append(q.Locked, kept)
		if !n.AutoInstalled || n.Paused || slices.ContainsFunc(vain, func(o Node) bool { return o.Compare(n) == 0 }) {
			q.Roots = append(q.Roots, lockfile.Root{Package: kept.Repository, Constraint: cmp.Or(kept.Version, kept.Pin()), Exact: true, By: n.requester()})
		}
	}
	q.Roots = append(q.Roots, g.outsideRequirements...)
	return q
}

// kept is what is installed of a package, with what counts of what it needs.
func (n Node) locked() lockfile.Package {
	out := n.Package
	out.Dependencies = append(n.requiredDependencies(), n.optionalDependencies()...)
	return out
}

// needsOf are the needs of a package that is not a choice of its own.
func (g *Graph) rootsFor(n Node) []lockfile.Root {
	var out []lockfile.Root
	for _, d := range append(n.requiredDependencies(), n.optionalDependencies()...) {
		out = append(out, lockfile.Root{Package: d.Package, Constraint: d.Constraint, Optional: d.Optional, By: n.objectName()})
	}
	return out
}

// asker is the package as explanations name it.
func (n Node) requester() string {
	if n.Paused {
		return n.objectName() + " (paused)"
	}
	return n.objectName()
}

// short names the object of a package as commands do.
func (n Node) objectName() string { return fmt.Sprintf("%s/%s", strings.ToLower(n.Kind), n.Name) }
