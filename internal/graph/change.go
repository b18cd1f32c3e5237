package graph

import (
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// Change is a package to install, or to move to another version.
type Change struct {
	// Object is the installed package, or nil.
	Existing *Node
	// To is the resolved version.
	To lockfile.Package
	// For lists the repositories of the dependents.
	RequiredBy []string
	// Exact reports whether a dependent requires exactly this digest, independent of its tag.
	Exact bool
}

// Reference returns the reference for the spec of the package.
func (c Change) Reference() string {
	if c.Exact {
		return c.To.Reference().String()
	}
	return Node{Package: c.To}.Reference()
}

// is reports whether a package already has the resolved version.
func (c Change) appliedTo(n Node) bool {
	if c.Exact {
		return n.Pin() == c.To.Pin()
	}
	return n.Reference() == c.Reference()
}

// Changes returns the changes that turn the graph into the resolved one, dependencies first.
func (g *Graph) Changes(r resolver.Result) []Change {
	var out []Change
	for _, p := range r.InstallOrder() {
		c := Change{To: p, RequiredBy: requiredBy(r, p), Exact: requiredByDigest(r, p)}
		if n, ok := g.Find(p.Repository); ok {
			if c.appliedTo(n) {
				continue
			}
			c.Existing = &n
		}
		out = append(out, c)
	}
	return out
}

// askers returns the repositories of the dependents of a package.
func requiredBy(r resolver.Result, p lockfile.Package) []string {
	var out []string
	for _, by := range r.Dependents(p.Repository) {
		if by.Package != "" {
			out = append(out, by.Package)
		}
	}
	return slices.Compact(out)
}

// exactly reports whether a dependent requires a package by digest.
func requiredByDigest(r resolver.Result, p lockfile.Package) bool {
	return slices.ContainsFunc(r.Dependents(p.Repository), func(by lockfile.Dependent) bool {
		return by.Package != "" && strings.Contains(version.ParseConstraint(by.Constraint).Pinned(), "sha256:")
	})
}

// depths returns for each repository the length of the longest path below it.
func depths(packages []lockfile.Package) map[string]int {
	byName, out := map[string]lockfile.Package{}, map[string]int{}
	for _, p := range packages {
		byName[p.Repository] = p
	}
	var visit func(name string) int
	visit = func(name string) int {
		if d, ok := out[name]; ok {
			return d
		}
		out[name] = 0
		deepest := 0
		for _, d := range byName[name].Dependencies {
			deepest = max(deepest, visit(d.Package)+1)
		}
		out[name] = deepest
		return deepest
	}
	for _, p := range packages {
		visit(p.Repository)
	}
	return out
}

// Orphans returns the packages that were installed as dependencies and that no package requires any more, including
// packages that only orphans require. Dependents precede their dependencies.
func (g *Graph) Orphans() []Node {
	needed := map[string]bool{}
	var reach func(n Node)
	reach = func(n Node) {
		for _, d := range n.requiredDependencies() {
			if needed[d.Package] {
				continue
			}
			needed[d.Package] = true
			for _, i := range g.byRepository[d.Package] {
				reach(g.nodes[i])
			}
		}
	}
	for _, n := range g.nodes {
		if !n.AutoInstalled {
			reach(n)
		}
	}
	var out []Node
	for _, n := range g.nodes {
		if n.AutoInstalled && !needed[n.Repository] {
			out = append(out, n)
		}
	}
	packages := make([]lockfile.Package, len(out))
	for i, n := range out {
		packages[i] = n.Package
		packages[i].Dependencies = n.requiredDependencies()
	}
	depth := depths(packages)
	slices.SortStableFunc(out, func(a, b Node) int { return depth[b.Repository] - depth[a.Repository] })
	return out
}
