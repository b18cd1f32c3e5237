package resolver

import (
	"fmt"
	"maps"
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// aliases maps the names of repositories to the name of the package in a problem. A
// repository without an entry keeps its name.
type aliases map[string]string

func (a aliases) of(name string) string {
	if to, ok := a[name]; ok {
		return to
	}
	return name
}

// dependencies returns dependencies with the names of the problem.
func (a aliases) dependencies(list []dependency.Dependency) []dependency.Dependency {
	out := slices.Clone(list)
	for i := range out {
		out[i].Package = a.of(out[i].Package)
	}
	return out
}

// request returns a request with the names of the problem. If several locked packages have
// the same name, it keeps the package with that repository.
func (a aliases) request(q Request) Request {
	if len(a) == 0 {
		return q
	}
	q.Roots, q.Locked = slices.Clone(q.Roots), slices.Clone(q.Locked)
	for i := range q.Roots {
		q.Roots[i].Package = a.of(q.Roots[i].Package)
	}
	named := map[string]bool{}
	for _, p := range q.Locked {
		named[p.Repository] = true
	}
	q.Locked = slices.DeleteFunc(q.Locked, func(p lockfile.Package) bool {
		name := a.of(p.Repository)
		return name != p.Repository && named[name]
	})
	for i := range q.Locked {
		q.Locked[i].Repository = a.of(q.Locked[i].Repository)
		q.Locked[i].Dependencies = a.dependencies(q.Locked[i].Dependencies)
	}
	return q
}

// identity returns the name of a package in the problem: the canonical name of its
// repository. It records the name, so that findAliases can find repositories with the same
// location.
func (s *source) identity(pkg string) string {
	name, err := s.canonical(pkg)
	if err != nil {
		return pkg
	}
	s.recordName(name)
	return s.aliases.of(name)
}

// canonical returns the canonical name of the repository of a dependency.
func (s *source) canonical(pkg string) (string, error) {
	ref, err := oci.ParseReference(pkg, oci.ParseOptions{AllowUntagged: true, DefaultRegistry: s.resolver.DefaultRegistry})
	if err != nil {
		return "", err
	}
	if s.resolver.Canonical != nil {
		return s.resolver.Canonical(ref.Name()), nil
	}
	return ref.Name(), nil
}

func (s *source) recordName(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names[name] = true
}

// dependencies returns the dependencies of a package, under the names of the problem.
func (s *source) dependencies(meta xpkg.Meta) []dependency.Dependency {
	var out []dependency.Dependency
	for _, d := range meta.Dependencies() {
		out = append(out, d.On(s.identity(d.Package)))
	}
	return append(out, s.virtualDependencies(meta.Kinds)...)
}

// findAliases returns an alias for each name whose repository has the same location as
// another one: the locked name of the location, or else the first one in alphabetical order.
// A repository with an unknown location has no alias.
func (s *source) findAliases(q Request) aliases {
	s.wait()
	s.mu.Lock()
	names := slices.Sorted(maps.Keys(s.names))
	s.mu.Unlock()
	locked := func(name string) bool {
		return slices.ContainsFunc(q.Locked, func(p lockfile.Package) bool { return p.Repository == name })
	}
	at := map[string][]string{}
	for _, name := range names {
		ref, err := reference(name, "")
		if err != nil {
			continue
		}
		if location, err := s.resolver.Registry.Location(s.ctx, ref); err == nil {
			at[location] = append(at[location], name)
		}
	}
	out := aliases{}
	for _, same := range at {
		to := same[max(0, slices.IndexFunc(same, locked))]
		for _, name := range same {
			if name != to {
				out[name] = to
			}
		}
	}
	return out
}

// noteAliases notes the packages that have several names.
func (s *source) noteAliases() {
	for _, name := range slices.Sorted(maps.Keys(s.aliases)) {
		s.note(fmt.Sprintf("%s and %s are read from the same repository, and are one package", name, s.aliases[name]))
	}
}
