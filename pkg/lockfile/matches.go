package lockfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// ErrContradicted is the code for a lock file that contradicts the metadata of a package.
var ErrContradicted = errcode.Code{
	Name: "LockContradicted", Class: errcode.Untrusted,
	Cause: "The dependencies or the kind of a package in the lock file differ from its metadata. The file was edited, or the index of the package was wrong when it was resolved.",
	Fix:   "Find the cause, and rewrite the file with `xpkg resolve --upgrade` and the file as --lock.",
}

// Matches compares the file with the metadata of a package: its kind, its dependencies on packages, and the kinds that
// it requires.
func (p Package) Matches(kind xpkg.Kind, needs []dependency.Dependency, kinds []dependency.KindRef) error {
	if kind != p.Kind {
		return ErrContradicted.New(nil, "%s %s is a %s, but locked as a %s", p.Repository, p.ShortVersion(), kind, p.Kind)
	}
	var problems []string
	for _, d := range needs {
		if slices.ContainsFunc(p.Dependencies, func(l dependency.Dependency) bool { return matches(l, d) }) {
			continue
		}
		words := "it needs %s %s, which is not locked"
		if d.Optional {
			words = "it works only with %s %s, which is not locked"
		}
		problems = append(problems, fmt.Sprintf(words, d.Package, d.Constraint))
	}
	problems = append(problems, p.matchKinds(kinds)...)
	for _, l := range p.Dependencies {
		if l.CRD != "" {
			continue
		}
		if slices.ContainsFunc(needs, func(d dependency.Dependency) bool { return matches(l, d) }) {
			continue
		}
		words := "it does not need %s %s"
		if l.Optional {
			words = "it has no optional dependency on %s %s"
		}
		problems = append(problems, fmt.Sprintf(words, l.Package, l.Constraint))
	}
	if problems == nil {
		return nil
	}
	return ErrContradicted.New(
		errors.New(strings.Join(problems, "; ")), "the locked metadata of %s %s differs from the package", p.Repository,
		p.ShortVersion(),
	)
}

// matchKinds returns the differences between the locked and the required kinds.
func (p Package) matchKinds(kinds []dependency.KindRef) []string {
	var locked []dependency.KindRef
	for _, l := range p.Dependencies {
		if k, err := dependency.ParseKindRef(l.CRD); err == nil {
			locked = append(locked, k)
		}
	}
	// A locked kind has the name of the kind, and not of the resource, and is one of several for a reference to all kinds.
	covers := func(required, locked dependency.KindRef) bool {
		return required.Group == locked.Group && required.Version == locked.Version
	}
	var problems []string
	for _, k := range kinds {
		if !slices.ContainsFunc(locked, func(l dependency.KindRef) bool { return covers(k, l) }) {
			problems = append(problems, fmt.Sprintf("it needs the kind %s, which is not locked", k))
		}
	}
	for _, l := range locked {
		if !slices.ContainsFunc(kinds, func(k dependency.KindRef) bool { return covers(k, l) }) {
			problems = append(problems, fmt.Sprintf("it does not need the kind %s", l))
		}
	}
	return problems
}

// matches reports whether a locked dependency is a dependency of the package. For a dependency without a
// registry, the resolver has selected the registry.
func matches(d dependency.Dependency, need dependency.Dependency) bool {
	return d.Optional == need.Optional && d.Constraint == need.Constraint &&
		(oci.SameRepository(d.Package, need.Package) || strings.HasSuffix(d.Package, "/"+oci.RepositoryName(need.Package)))
}
