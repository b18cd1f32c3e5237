package graph

import (
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// Change is a package to install, or to move to another version.
type Change struct {
	// Existing is the installed package, or nil.
	Existing *Node
	// To is the resolved version.
	To lockfile.Package
	// RequiredBy lists the repositories of the dependents.
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

// appliedTo reports whether a package already has the resolved version.
func (c Change) appliedTo(n Node) bool {
	if c.Exact {
		return n.Pin() == c.To.Pin()
	}
	return n.Reference() == c.Reference()
}

// After returns packages as they are after changes.
func After(nodes []Node, changes []Change) []Node {
	out := slices.Clone(nodes)
	for _, c := range changes {
		if c.Existing == nil {
			out = append(out, Node{Kind: string(c.To.Kind), Name: c.Names()[0], Package: c.To})
			continue
		}
		if i := slices.IndexFunc(out, func(n Node) bool { return n.Compare(*c.Existing) == 0 }); i >= 0 {
			recorded := slices.DeleteFunc(
				slices.Clone(out[i].Dependencies), func(d dependency.Dependency) bool { return d.CRD == "" },
			)
			out[i].Package = c.To
			out[i].Dependencies = append(slices.Clone(c.To.Dependencies), recorded...)
		}
	}
	return out
}

// Changes returns the changes that turn the graph into the resolved one, dependencies first.
func (g *Graph) Changes(r resolver.Result) []Change {
	var out []Change
	resolved := r.Graph()
	for _, p := range r.InstallOrder() {
		dependents := resolved.Dependents(p.Repository)
		c := Change{To: p, RequiredBy: requiredBy(dependents), Exact: requiredByDigest(dependents)}
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

// requiredBy returns the repositories of dependents.
func requiredBy(dependents []dependency.Edge) []string {
	var out []string
	for _, by := range dependents {
		out = append(out, by.From)
	}
	return slices.Compact(out)
}

// requiredByDigest reports whether a dependent requires a package by digest.
func requiredByDigest(dependents []dependency.Edge) bool {
	return slices.ContainsFunc(dependents, func(by dependency.Edge) bool {
		return strings.Contains(version.ParseConstraint(by.Constraint).Pinned(), "sha256:")
	})
}

// Orphans returns the packages that were installed as dependencies, are not in use, and that no package requires any
// more, including packages that only orphans require. Dependents precede their dependencies. Dependencies whose
// resolution is skipped count: their package does not work without them.
func (g *Graph) Orphans() []Node {
	return g.unrequired(func(n Node) []dependency.Dependency { return dependency.Required(n.Dependencies) })
}

// unrequired returns the packages that were installed as dependencies, are not in use, and that are no dependencies of
// packages other than themselves. Dependents precede their dependencies.
func (g *Graph) unrequired(dependencies func(Node) []dependency.Dependency) []Node {
	var all, unneeded dependency.Graph
	var needed []string
	for _, n := range g.nodes {
		required := dependencies(n)
		all.Add(n.Repository, required...)
		if n.InUse {
			needed = append(needed, n.Repository)
		}
		for _, d := range required {
			if !n.AutoInstalled {
				needed = append(needed, d.Package)
			}
		}
	}
	orphans := all.Orphans(needed...)
	var out []Node
	for _, n := range g.nodes {
		if n.AutoInstalled && slices.Contains(orphans, n.Repository) {
			out = append(out, n)
			unneeded.Add(n.Repository, dependencies(n)...)
		}
	}
	depth := unneeded.Depths()
	slices.SortStableFunc(out, func(a, b Node) int { return depth[b.Repository] - depth[a.Repository] })
	return out
}
