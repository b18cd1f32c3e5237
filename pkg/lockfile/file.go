// Package lockfile reads and writes lock files: the version and the digest of every package in a dependency
// tree.
//
// A lock file is reviewed like source code: its changes are the changes of a control plane. It therefore
// contains no times and no host names, is sorted, and is byte-identical for the same dependency tree.
package lockfile

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// File is the content of a lock file.
type File struct {
	// Roots are the requested packages.
	Roots []dependency.Root `json:"roots"`
	// Packages are the packages that the roots require, ordered by repository, without duplicates.
	Packages []Package `json:"packages"`
}

// Package is one version of a package.
type Package struct {
	// Package is the repository of the package.
	Repository string `json:"package"`
	// Version is the tag; empty for a package that is identified only by its digest.
	Version string     `json:"version,omitempty"`
	Digest  oci.Digest `json:"digest"`
	// Kind is the kind in the metadata of the package.
	Kind xpkg.Kind `json:"kind"`
	// Provides are the required kinds for which the package was selected, in order. The selection is kept until the file
	// is changed, also if other packages that provide the kinds become known.
	Provides []dependency.KindRef `json:"provides,omitempty"`
	// Signers have signed this version, each as the subject and the issuer of a certificate, or as the digest of a key.
	// They are empty if no signature was required when the file was written.
	Signers []string `json:"signers,omitempty"`
	// Dependencies are the dependencies of this version, ordered by package.
	Dependencies []dependency.Dependency `json:"dependencies,omitempty"`
}

// Reference returns the reference of the package with its digest and, if known, its tag.
func (p Package) Reference() oci.Reference {
	ref := p.RepositoryReference()
	ref.Tag, ref.Digest = p.Version, p.Digest
	return ref
}

// RepositoryReference returns the reference of the repository of the package.
func (p Package) RepositoryReference() oci.Reference {
	ref, err := oci.ParseReference(p.Repository, oci.ParseOptions{AllowUntagged: true})
	if err != nil {
		return oci.Reference{Repository: p.Repository}
	}
	return ref
}

// Pin returns the version in the form that the solver uses.
func (p Package) Pin() string {
	if p.Version == "" {
		return p.Digest.String()
	}
	return p.Version + "@" + p.Digest.String()
}

// ShortVersion returns the version for display.
func (p Package) ShortVersion() string { return cmp.Or(p.Version, p.Digest.Short()) }

// Find returns the package of a repository.
func (f *File) Find(repository string) (Package, bool) {
	at, ok := slices.BinarySearchFunc(
		f.Packages, repository, func(p Package, name string) int { return cmp.Compare(p.Repository, name) },
	)
	if !ok {
		return Package{}, false
	}
	return f.Packages[at], true
}

// Provider returns the package that was selected for a required kind.
func (f *File) Provider(kind dependency.KindRef) (Package, bool) {
	at := slices.IndexFunc(f.Packages, func(p Package) bool { return slices.Contains(p.Provides, kind) })
	if at < 0 {
		return Package{}, false
	}
	return f.Packages[at], true
}

// ProvidersOfKinds returns the dependencies on the packages that were selected for required kinds, with the constraints
// that were recorded.
func (f *File) ProvidersOfKinds() map[dependency.KindRef]dependency.Dependency {
	out := map[dependency.KindRef]dependency.Dependency{}
	for _, p := range f.Packages {
		for _, k := range p.Provides {
			out[k] = dependency.Dependency{Package: p.Repository, CRD: k.String()}
		}
	}
	record := func(repository, constraint, crd string) {
		k, err := dependency.ParseKindRef(crd)
		if d, ok := out[k]; err == nil && ok && d.Package == repository && d.Constraint == "" {
			d.Constraint = constraint
			out[k] = d
		}
	}
	for _, r := range f.Roots {
		record(r.Package, r.Constraint, r.CRD)
	}
	for _, p := range f.Packages {
		for _, d := range p.Dependencies {
			record(d.Package, d.Constraint, d.CRD)
		}
	}
	return out
}

// sort sorts the roots, the packages and their dependencies.
func (f *File) sort() {
	slices.SortFunc(f.Roots, func(a, b dependency.Root) int {
		return cmp.Or(
			cmp.Compare(a.Package, b.Package), cmp.Compare(a.Constraint, b.Constraint), cmp.Compare(a.By, b.By),
			cmp.Compare(strconv.FormatBool(a.Optional), strconv.FormatBool(b.Optional)), cmp.Compare(a.CRD, b.CRD),
		)
	})
	f.Roots = slices.Compact(f.Roots)
	slices.SortFunc(f.Packages, func(a, b Package) int { return cmp.Compare(a.Repository, b.Repository) })
	for i := range f.Packages {
		deps := f.Packages[i].Dependencies
		slices.SortFunc(deps, func(a, b dependency.Dependency) int {
			return cmp.Or(
				cmp.Compare(a.Package, b.Package), cmp.Compare(a.Constraint, b.Constraint),
				cmp.Compare(strconv.FormatBool(a.Optional), strconv.FormatBool(b.Optional)), cmp.Compare(a.CRD, b.CRD),
			)
		})
		f.Packages[i].Dependencies = slices.Compact(deps)
		kinds := f.Packages[i].Provides
		slices.SortFunc(kinds, func(a, b dependency.KindRef) int { return cmp.Compare(a.String(), b.String()) })
		f.Packages[i].Provides = slices.Compact(kinds)
		slices.Sort(f.Packages[i].Signers)
		f.Packages[i].Signers = slices.Compact(f.Packages[i].Signers)
	}
}
