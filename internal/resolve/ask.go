package resolve

import (
	"fmt"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/content"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/oci"
	"github.com/xpkg-dev/xpkg/internal/solve"
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
	if r.Name != nil {
		return r.Name(ref.Name())
	}
	return ref.Name()
}

// dependencies are what a package needs or works with, under the names of a problem.
func (r *Resolver) dependencies(meta format.Meta) []solve.Dependency {
	var out []solve.Dependency
	for _, d := range meta.Dependencies() {
		out = append(out, solve.Dependency{Package: r.identity(d.Package), Constraint: d.Constraint, Optional: d.Optional})
	}
	return out
}

// ask asks a registry about a version, or about a repository.
func ask[T any](s *source, pkg, pin string, question func(content.Origin) (T, error)) (answer T, err error) {
	ref, err := reference(pkg, pin)
	if err != nil {
		return answer, unnamed(pkg, err)
	}
	o := content.Plain(ref)
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
	answer, err = askAt(s, o, question)
	return answer, lookedUp(err, ref)
}

// askAt asks when the host of an origin has room.
func askAt[T any](s *source, o content.Origin, question func(content.Origin) (T, error)) (answer T, err error) {
	leave, err := s.resolver.hosts.enter(s.ctx, o, s.resolver.PerHost)
	if err != nil {
		return answer, err
	}
	defer leave()
	return question(o)
}

// unnamed is the failure of a dependency whose package is no reference.
func unnamed(pkg string, err error) error {
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
func (s *source) aside(v version, err error) error {
	if !unusable(err) {
		return err
	}
	s.note(fmt.Sprintf("%s %s is set aside: %v", v.pkg, v.pin, err))
	return ErrUnusable.New(err, "%s %s cannot be used", v.pkg, v.pin)
}
