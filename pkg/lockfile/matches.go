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

// Matches compares the file with the metadata of a package.
func (p Package) Matches(kind xpkg.Kind, needs []dependency.Dependency) error {
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
	for _, l := range p.Dependencies {
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
	return ErrContradicted.New(errors.New(strings.Join(problems, "; ")), "the locked metadata of %s %s differs from the package", p.Repository, p.ShortVersion())
}

// matches reports whether a locked dependency is a dependency of the package. For a dependency without a
// registry, the resolver has selected the registry.
func matches(d dependency.Dependency, need dependency.Dependency) bool {
	name := oci.RepositoryName(need.Package)
	return d.Optional == need.Optional && d.Constraint == need.Constraint && (d.Package == name || strings.HasSuffix(d.Package, "/"+name))
}
