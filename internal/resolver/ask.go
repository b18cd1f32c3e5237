package resolver

import (
	"fmt"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/solver"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// reference is a version of a package, as a solver names it; an empty one is the
// repository itself.
func reference(pkg, pin string) (oci.Reference, error) {
	separator := ":"
	switch {
	case pin == "":
		separator = ""
	case strings.HasPrefix(pin, "sha256:"):
		separator = "@"
	}
	return oci.ParseReference(pkg+separator+pin, oci.ParseOptions{AllowUntagged: pin == ""})
}

// identity is the one name of a package in a problem: its repository.
func (r *Resolver) identity(pkg string) string {
	ref, err := oci.ParseReference(pkg, oci.ParseOptions{AllowUntagged: true, DefaultRegistry: r.DefaultRegistry})
	if err != nil {
		return pkg
	}
	if r.Canonical != nil {
		return r.Canonical(ref.Name())
	}
	return ref.Name()
}

// dependencies are what a package needs or works with, under the names of a problem.
func (r *Resolver) dependencies(meta xpkg.Meta) []solver.Dependency {
	var out []solver.Dependency
	for _, d := range meta.Dependencies() {
		out = append(out, solver.Dependency{Package: r.identity(d.Package), Constraint: d.Constraint, Optional: d.Optional})
	}
	return out
}

// ask asks a registry about a version, or about a repository.
func locateAndCall[T any](s *source, pkg, pin string, question func(fetch.Origin) (T, error)) (answer T, err error) {
	ref, err := reference(pkg, pin)
	if err != nil {
		return answer, invalidName(pkg, err)
	}
	o := fetch.Plain(ref)
	if s.resolver.Locate != nil {
		if pin == "" {
			// Prefixes are compared with whole references, and a list of tags does not
			// depend on the tag.
			ref.Tag = "latest"
		}
		if o, err = s.resolver.Locate(s.ctx, ref); err != nil {
			return answer, err
		}
	}
	answer, err = callAt(s, o, question)
	return answer, classifyLookup(err, ref)
}

// askAt asks when the host of an origin has room.
func callAt[T any](s *source, o fetch.Origin, question func(fetch.Origin) (T, error)) (answer T, err error) {
	leave, err := s.resolver.hosts.acquire(s.ctx, o, s.resolver.PerHost)
	if err != nil {
		return answer, err
	}
	defer leave()
	return question(o)
}

// unnamed is the failure of a dependency whose package is no reference.
func invalidName(pkg string, err error) error {
	parses := func(registry string) bool {
		_, err := oci.ParseReference(pkg, oci.ParseOptions{AllowUntagged: true, DefaultRegistry: registry})
		return err == nil
	}
	if !parses("") && parses("registry.invalid") {
		return ErrUnqualified.New(nil, "%s names no registry", pkg)
	}
	return ErrUnusable.New(err, "%q names no version of a package", pkg)
}

// aside is what the solver is told of a version that could not be read: one that is
// wrong in itself is one that is not there, which a note says.
func (s *source) asNotFound(v versionKey, err error) error {
	if !isDefect(err) {
		return err
	}
	s.note(fmt.Sprintf("%s %s is set aside: %v", v.pkg, v.pin, err))
	return ErrUnusable.New(err, "%s %s cannot be used", v.pkg, v.pin)
}
