// Package lockfile is the file that keeps one version, with its digest, of
// everything that some packages need.
//
// It is written by people's tools and read by people: a change of it in a review
// says what changes in a control plane. So it holds no time, no host and no order
// that varies, and the same closure is the same file to the byte.
package lockfile

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/oci"
	"github.com/xpkg-dev/xpkg/internal/solve"
)

// File is what a lock file says.
type File struct {
	// Roots are what was asked for.
	Roots []Root `json:"roots"`
	// Packages are everything that the roots need, each repository once, in the
	// order of their repositories.
	Packages []Package `json:"packages"`
}

// Root is a package that somebody asks for.
type Root struct {
	// Package is its repository, with the registry and without tag or digest.
	Package string `json:"package"`
	// Constraint is as in [solve.Dependency]: a constraint, a tag, a digest, or a
	// tag with its digest.
	Constraint string `json:"constraint"`
	// Exact takes Constraint for a tag even where it reads as a constraint.
	Exact bool `json:"exact,omitempty"`
	// Optional makes it a condition: the package need not be there, and where it is, its
	// version has to be one that the constraint accepts.
	Optional bool `json:"optional,omitempty"`
	// By names the package that asks, where it is the package of a folder; it is
	// empty where a person asks.
	By string `json:"by,omitempty"`
}

// Package is one version of a package.
type Package struct {
	// Package is the repository.
	Package string `json:"package"`
	// Version is the tag; empty for a package that is known by its digest alone.
	Version string     `json:"version,omitempty"`
	Digest  oci.Digest `json:"digest"`
	// Kind is the one that the package itself says it has.
	Kind format.Kind `json:"kind"`
	// Dependencies are those of this version, in the order of their packages.
	Dependencies []Dependency `json:"dependencies,omitempty"`
}

// Dependency is what a package needs of another one of the file.
type Dependency struct {
	Package    string `json:"package"`
	Constraint string `json:"constraint"`
	// Optional says that the other one need not be in the file. Where it is, its version
	// has to be one that the constraint accepts.
	Optional bool `json:"optional,omitempty"`
}

// Reference names the content of the package, by its digest and, where it is known,
// its tag.
func (p Package) Reference() oci.Reference {
	ref := p.Repository()
	ref.Tag, ref.Digest = p.Version, p.Digest
	return ref
}

// Repository names the repository of the package.
func (p Package) Repository() oci.Reference {
	ref, err := oci.ParseReference(p.Package, oci.ParseOptions{AllowUntagged: true})
	if err != nil {
		return oci.Reference{Repository: p.Package}
	}
	return ref
}

// Pin is the version as a solver names it.
func (p Package) Pin() string {
	if p.Version == "" {
		return p.Digest.String()
	}
	return p.Version + "@" + p.Digest.String()
}

// Name is the version as people read it.
func (p Package) Name() string { return cmp.Or(p.Version, p.Digest.Short()) }

// Accepts reports whether a version of the package will do for the root.
func (r Root) Accepts(p Package) bool {
	if r.Exact {
		return r.Constraint == p.Version || r.Constraint == p.Pin()
	}
	return solve.ParseConstraint(r.Constraint).Accepts(p.Pin())
}

// Find gives the package of a repository.
func (f *File) Find(repository string) (Package, bool) {
	at, ok := slices.BinarySearchFunc(f.Packages, repository, func(p Package, name string) int { return cmp.Compare(p.Package, name) })
	if !ok {
		return Package{}, false
	}
	return f.Packages[at], true
}

// sort puts everything into its one order.
func (f *File) sort() {
	slices.SortFunc(f.Roots, func(a, b Root) int {
		return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Constraint, b.Constraint), cmp.Compare(a.By, b.By), cmp.Compare(strconv.FormatBool(a.Optional), strconv.FormatBool(b.Optional)))
	})
	f.Roots = slices.Compact(f.Roots)
	slices.SortFunc(f.Packages, func(a, b Package) int { return cmp.Compare(a.Package, b.Package) })
	for i := range f.Packages {
		deps := f.Packages[i].Dependencies
		slices.SortFunc(deps, func(a, b Dependency) int {
			return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Constraint, b.Constraint), cmp.Compare(strconv.FormatBool(a.Optional), strconv.FormatBool(b.Optional)))
		})
		f.Packages[i].Dependencies = slices.Compact(deps)
	}
}
