package closure

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/lockfile"
	"github.com/xpkg-dev/xpkg/internal/resolve"
	"github.com/xpkg-dev/xpkg/internal/solve"
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

func (p Policy) moves() solve.Moves {
	switch p {
	case Upgrade:
		return solve.Upward
	case UpgradeOrDowngrade:
		return solve.Freely
	}
	return solve.Never
}

// Request is what has to be resolved so that every package of the graph has what it
// needs. Packages that a person installed stay what they are; of those that were made
// for others the version stays wherever it fits, and that of one that is paused stays.
func (g *Graph) Request(policy Policy) resolve.Request {
	// A package that moves takes the nearest version that does: the smallest change.
	q := resolve.Request{Moves: policy.moves(), Nearest: true}
	vain := g.Orphans()
	for _, n := range g.nodes {
		if first, _ := g.Find(n.Package.Package); first.Compare(n) != 0 {
			// The same package under two names; a second version of it is no choice, and
			// what that needs still counts.
			q.Roots = append(q.Roots, g.needsOf(n)...)
			continue
		}
		kept := n.kept()
		if n.Digest.IsZero() {
			// What it needs is read where it comes from.
			q.Roots = append(q.Roots, lockfile.Root{Package: kept.Package, Constraint: kept.Version, Exact: true, By: n.short()})
			continue
		}
		q.Kept = append(q.Kept, kept)
		if !n.Made || n.Paused || slices.ContainsFunc(vain, func(o Node) bool { return o.Compare(n) == 0 }) {
			q.Roots = append(q.Roots, lockfile.Root{Package: kept.Package, Constraint: cmp.Or(kept.Version, kept.Pin()), Exact: true, By: n.asker()})
		}
	}
	q.Roots = append(q.Roots, g.conditions...)
	return q
}

// kept is what is installed of a package, with what counts of what it needs.
func (n Node) kept() lockfile.Package {
	out := n.Package
	out.Dependencies = append(n.needs(), n.suits()...)
	return out
}

// needsOf are the needs of a package that is not a choice of its own.
func (g *Graph) needsOf(n Node) []lockfile.Root {
	var out []lockfile.Root
	for _, d := range append(n.needs(), n.suits()...) {
		out = append(out, lockfile.Root{Package: d.Package, Constraint: d.Constraint, Optional: d.Optional, By: n.short()})
	}
	return out
}

// asker is the package as explanations name it.
func (n Node) asker() string {
	if n.Paused {
		return n.short() + " (paused)"
	}
	return n.short()
}

// short names the object of a package as commands do.
func (n Node) short() string { return fmt.Sprintf("%s/%s", strings.ToLower(n.Kind), n.Name) }
