package lockfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Graph returns the packages of the file with their required dependencies.
func (f *File) Graph() *dependency.Graph {
	g := &dependency.Graph{}
	for _, p := range f.Packages {
		g.Add(p.Repository, dependency.Required(p.Dependencies)...)
	}
	return g
}

// InstallOrder returns the packages in dependency order, except for cycles, and otherwise by repository. Optional
// dependencies in the file precede their dependents, unless they depend on them.
func (f *File) InstallOrder() []Package {
	g := f.Graph()
	for _, p := range f.Packages {
		for _, d := range dependency.Optional(p.Dependencies) {
			if !g.Reachable(d.Package)[p.Repository] {
				g.Add(p.Repository, d)
			}
		}
	}
	var out []Package
	for _, name := range g.Order() {
		p, _ := f.Find(name)
		out = append(out, p)
	}
	return out
}

// Dependent is a package or a root that requires a package.
type Dependent struct {
	// Package is the repository of the requiring package; empty for a root.
	Package string
	// By is the requester of a root; "you" means the user.
	By         string
	Constraint string
}

// Dependents returns all requirers of a package, roots first.
func (f *File) Dependents(repository string) []Dependent { return f.dependents(repository, false) }

// OptionalDependents returns the packages and roots that constrain a package through an optional dependency, roots
// first.
func (f *File) OptionalDependents(repository string) []Dependent {
	return f.dependents(repository, true)
}

func (f *File) dependents(repository string, optional bool) []Dependent {
	var out []Dependent
	for _, r := range f.Roots {
		if r.Package == repository && r.Optional == optional {
			out = append(out, Dependent{By: r.Requester(), Constraint: r.Constraint})
		}
	}
	for _, p := range f.Packages {
		for _, d := range p.Dependencies {
			if d.Package == repository && d.Optional == optional {
				out = append(out, Dependent{Package: p.Repository, Constraint: d.Constraint})
			}
		}
	}
	return out
}

// Check returns the reasons why the file is not the dependency tree of the given roots: added, removed or
// changed roots, and versions that do not satisfy a constraint. It returns nil if the file is up to date.
func (f *File) Check(roots []dependency.Root) []string {
	want := File{Roots: f.selectProviders(roots)}
	want.sort()
	var out []string
	var removed, added []dependency.Root
	for _, r := range f.Roots {
		if !slices.Contains(want.Roots, r) {
			removed = append(removed, r)
		}
	}
	for _, r := range want.Roots {
		if !slices.Contains(f.Roots, r) {
			added = append(added, r)
		}
	}
	for _, r := range added {
		was := slices.IndexFunc(removed, func(o dependency.Root) bool {
			return o.Package == r.Package && o.By == r.By && o.Optional == r.Optional
		})
		if was < 0 {
			out = append(out, describe(r)+", which is not locked")
			continue
		}
		out = append(out, fmt.Sprintf("%s, but %s is locked", describe(r), cmp.Or(removed[was].Constraint, "any version")))
		removed = slices.Delete(removed, was, was+1)
	}
	for _, r := range removed {
		out = append(out, "the lock file has a request that was removed: "+describe(r))
	}
	return append(out, f.Problems()...)
}

// selectProviders returns roots in which each requested kind has the package that the file selects for it.
func (f *File) selectProviders(roots []dependency.Root) []dependency.Root {
	out := slices.Clone(roots)
	for i, r := range out {
		at := slices.IndexFunc(f.Roots, func(l dependency.Root) bool { return r.CRD != "" && r.CRD == l.CRD && r.By == l.By })
		if r.Package == "" && at >= 0 {
			out[i] = f.Roots[at]
		}
	}
	return out
}

// Problems returns the constraints that the versions of the file do not satisfy, and the packages without a
// requirer.
func (f *File) Problems() []string {
	var out []string
	for _, r := range f.Roots {
		if p, ok := f.Find(r.Package); !r.Accepts(p.Pin()) && (ok || !r.Optional) {
			out = append(out, fmt.Sprintf("%s, but %s is locked", describe(r), p.ShortVersion()))
		}
	}
	orphans := f.Graph().Orphans(f.required()...)
	for _, p := range f.Packages {
		if slices.Contains(orphans, p.Repository) {
			out = append(out, fmt.Sprintf("no package requires %s", p.Repository))
		}
		for _, d := range p.Dependencies {
			to, ok := f.Find(d.Package)
			if d.Optional && !ok || (dependency.Root{Constraint: d.Constraint}).Accepts(to.Pin()) {
				continue
			}
			verb := "needs"
			if d.Optional {
				verb = "works only with"
			}
			out = append(out, fmt.Sprintf(
				"%s %s %s %s %s, but %s is locked", p.Repository, p.ShortVersion(), verb, d.Package, d.Constraint,
				to.ShortVersion(),
			))
		}
	}
	return out
}

// describe describes the request of a root.
func describe(r dependency.Root) string {
	asks := "you request "
	switch {
	case r.Optional:
		asks = r.By + " works only with "
	case r.By != "":
		asks = r.By + " requests "
	}
	if r.CRD != "" && r.Package == "" {
		return asks + "the kind " + r.CRD
	}
	return asks + r.Package + " " + r.Constraint
}

// required returns the repositories of the required roots.
func (f *File) required() []string {
	var out []string
	for _, r := range f.Roots {
		if !r.Optional {
			out = append(out, r.Package)
		}
	}
	return out
}

// Match returns the packages whose repository is the given one, or ends with a slash and the given name.
func (f *File) Match(name string) []Package {
	if p, ok := f.Find(name); ok {
		return []Package{p}
	}
	var out []Package
	for _, p := range f.Packages {
		if strings.HasSuffix(p.Repository, "/"+name) || oci.SameRepository(p.Repository, name) {
			out = append(out, p)
		}
	}
	return out
}

// Paths returns the shortest path from each root to a package through each of its direct dependents. A path is a list
// of repositories that starts with a root and ends with the package.
func (f *File) Paths(repository string) [][]string {
	var out [][]string
	g, roots := f.Graph(), f.required()
	around := func(pkg string) bool { return pkg == repository }
	for _, by := range f.Dependents(repository) {
		if by.Package == "" {
			out = append(out, []string{repository})
			continue
		}
		for _, root := range roots {
			if path := g.Path([]string{root}, by.Package, around); path != nil {
				out = append(out, append(path, repository))
			}
		}
	}
	slices.SortFunc(out, slices.Compare)
	return slices.CompactFunc(out, slices.Equal)
}
