package lockfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// InstallOrder returns the packages in dependency order, except for cycles, and otherwise by repository. Optional
// dependencies in the file precede their dependents, unless they depend on them.
func (f *File) InstallOrder() []Package {
	var out []Package
	before := f.predecessors()
	seen := map[string]bool{}
	var visit func(p Package)
	visit = func(p Package) {
		if seen[p.Repository] {
			return
		}
		seen[p.Repository] = true
		for _, name := range before[p.Repository] {
			if to, ok := f.Find(name); ok {
				visit(to)
			}
		}
		out = append(out, p)
	}
	for _, p := range f.Packages {
		visit(p)
	}
	return out
}

// before returns for each package the packages that precede it: its dependencies, and its optional dependencies if
// they create no cycle.
func (f *File) predecessors() map[string][]string {
	out := map[string][]string{}
	for _, p := range f.Packages {
		for _, d := range p.required() {
			out[p.Repository] = append(out[p.Repository], d.Package)
		}
	}
	for _, p := range f.Packages {
		for _, d := range p.Dependencies {
			if d.Optional && !reaches(out, d.Package, p.Repository) {
				out[p.Repository] = append(out[p.Repository], d.Package)
			}
		}
	}
	return out
}

// leads reports whether one package is the other, or comes after it.
func reaches(before map[string][]string, from, to string) bool {
	seen := map[string]bool{from: true}
	for todo := []string{from}; len(todo) > 0; {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if at == to {
			return true
		}
		for _, next := range before[at] {
			if !seen[next] {
				seen[next] = true
				todo = append(todo, next)
			}
		}
	}
	return false
}

// needs are the dependencies that have to be there.
func (p Package) required() []Dependency {
	return slices.DeleteFunc(slices.Clone(p.Dependencies), func(d Dependency) bool { return d.Optional })
}

// Dependent is a package or a root that requires a package.
type Dependent struct {
	// Package is the repository of the requiring package; empty for a root.
	Package string
	// By names a root's asker, and is "you" for a person.
	By         string
	Constraint string
}

// Dependents returns all requirers of a package, roots first.
func (f *File) Dependents(repository string) []Dependent { return f.dependents(repository, false) }

// OptionalDependents returns the packages and roots that constrain a package through an optional dependency, roots first.
func (f *File) OptionalDependents(repository string) []Dependent {
	return f.dependents(repository, true)
}

func (f *File) dependents(repository string, optional bool) []Dependent {
	var out []Dependent
	for _, r := range f.Roots {
		if r.Package == repository && r.Optional == optional {
			out = append(out, Dependent{By: cmp.Or(r.By, "you"), Constraint: r.Constraint})
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

// Check returns the reasons why the file is not the dependency tree of the given roots: added, removed or changed
// roots, and versions that do not satisfy a constraint. It returns none if the file is up to date. It reads only the
// file.
func (f *File) Check(roots []Root) []string {
	want := File{Roots: slices.Clone(roots)}
	want.sort()
	var out []string
	var removed, added []Root
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
		was := slices.IndexFunc(removed, func(o Root) bool { return o.Package == r.Package && o.By == r.By && o.Optional == r.Optional })
		if was < 0 {
			out = append(out, describe(r)+", which is not locked")
			continue
		}
		out = append(out, fmt.Sprintf("%s, and %s is locked", describe(r), cmp.Or(removed[was].Constraint, "any version")))
		removed = slices.Delete(removed, was, was+1)
	}
	for _, r := range removed {
		out = append(out, "the lock file has a request that was removed: "+describe(r))
	}
	return append(out, f.Problems()...)
}

// Problems returns the constraints that the versions of the file do not satisfy, and the packages without a
// requirer.
func (f *File) Problems() []string {
	var out []string
	for _, r := range f.Roots {
		if p, ok := f.Find(r.Package); !r.Accepts(p.Pin()) && (ok || !r.Optional) {
			out = append(out, fmt.Sprintf("%s, and %s is locked", describe(r), p.ShortVersion()))
		}
	}
	needed := f.reachable()
	for _, p := range f.Packages {
		if !needed[p.Repository] {
			out = append(out, fmt.Sprintf("no package requires %s", p.Repository))
		}
		for _, d := range p.Dependencies {
			to, ok := f.Find(d.Package)
			if d.Optional && !ok || (Root{Constraint: d.Constraint}).Accepts(to.Pin()) {
				continue
			}
			verb := "needs"
			if d.Optional {
				verb = "works only with"
			}
			out = append(out, fmt.Sprintf("%s %s %s %s %s, and %s is locked", p.Repository, p.ShortVersion(), verb, d.Package, d.Constraint, to.ShortVersion()))
		}
	}
	return out
}

// wish describes the request of a root.
func describe(r Root) string {
	asks := "you ask for "
	switch {
	case r.Optional:
		asks = r.By + " works only with "
	case r.By != "":
		asks = r.By + " asks for "
	}
	return asks + r.Package + " " + r.Constraint
}

// reached are the packages that a root needs, directly or not.
func (f *File) reachable() map[string]bool {
	seen := map[string]bool{}
	var visit func(repository string)
	visit = func(repository string) {
		if seen[repository] {
			return
		}
		seen[repository] = true
		p, _ := f.Find(repository)
		for _, d := range p.required() {
			visit(d.Package)
		}
	}
	for _, r := range f.Roots {
		if !r.Optional {
			visit(r.Package)
		}
	}
	return seen
}

// Match returns the packages whose repository is the given name, or ends with it after a slash.
func (f *File) Match(name string) []Package {
	if p, ok := f.Find(name); ok {
		return []Package{p}
	}
	var out []Package
	for _, p := range f.Packages {
		if strings.HasSuffix(p.Repository, "/"+name) {
			out = append(out, p)
		}
	}
	return out
}

// Paths returns the shortest path from the roots to a package through each of its direct requirers. A path is a list
// of repositories that starts with a root and ends with the package.
func (f *File) Paths(repository string) [][]string {
	var out [][]string
	for _, by := range f.Dependents(repository) {
		if by.Package == "" {
			out = append(out, []string{repository})
			continue
		}
		if path := f.shortest(by.Package, repository); path != nil {
			out = append(out, append(path, repository))
		}
	}
	slices.SortFunc(out, slices.Compare)
	return slices.CompactFunc(out, slices.Equal)
}

// shortest is the shortest way from a root to a package that does not lead through
// another one.
func (f *File) shortest(to, around string) []string {
	from := map[string]string{}
	var queue []string
	for _, r := range f.Roots {
		if _, seen := from[r.Package]; !seen && !r.Optional && r.Package != around {
			from[r.Package] = ""
			queue = append(queue, r.Package)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		if queue[0] == to {
			var path []string
			for at := to; at != ""; at = from[at] {
				path = append(path, at)
			}
			slices.Reverse(path)
			return path
		}
		p, _ := f.Find(queue[0])
		for _, d := range p.required() {
			if _, seen := from[d.Package]; !seen && d.Package != around {
				from[d.Package] = p.Repository
				queue = append(queue, d.Package)
			}
		}
	}
	return nil
}
