package solver

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// Suggestion is a change of a problem. Exactly one of Relax, Remove, Move, Provide, Publish
// and All is set.
type Suggestion struct {
	// Relax makes a root require the tag or digest To instead.
	Relax *dependency.Root
	// Remove removes roots.
	Remove []dependency.Root
	// Move lifts the restriction on moves of installed packages. It lists the resulting
	// moves.
	Move []Movement
	// Provide adds the version To of a package that no registry has, without dependencies.
	Provide *dependency.Dependency
	// Publish is a new version of a package that accepts To of a dependency, or does not
	// have the dependency if To is empty. Only the package's author can make it.
	Publish *Publication
	To      string
	// Older reports that To is older than the versions that the constraint accepts.
	Older bool
	// All are changes that are necessary together.
	All []Suggestion
}

// Movement is a change of the version of an installed package.
type Movement struct {
	Package, From, To string
	// Older reports a downgrade.
	Older bool
}

// Publication is a version of a package with one of its dependencies.
type Publication struct {
	Package, Version string
	Dependency       dependency.Dependency
}

// String returns the change as an imperative clause.
func (s Suggestion) String() string {
	switch {
	case s.Relax != nil && s.Relax.Optional:
		return fmt.Sprintf("let %s accept %s %s", s.Relax.Requester(), s.Relax.Package, s.version())
	case s.Relax != nil && s.Relax.By == "":
		return fmt.Sprintf("request %s %s instead of %s", s.Relax.Package, s.version(), shorten(s.Relax.Constraint))
	case s.Relax != nil:
		return fmt.Sprintf(
			"let %s request %s %s instead of %s", s.Relax.By, s.Relax.Package, s.version(), shorten(s.Relax.Constraint),
		)
	case s.Move != nil:
		return "move " + joinList(fewItems(textsOf(s.Move, Movement.String)), "and")
	case s.All != nil:
		return joinList(clauses(s.All), ", and")
	case s.Provide != nil:
		return "push or mirror " + s.provided()
	case s.Publish != nil && s.To == "":
		p := s.Publish
		return fmt.Sprintf(
			"ask the author of %s for a version like %s without the dependency on %s", p.Package, p.Version,
			p.Dependency.Package,
		)
	case s.Publish != nil:
		p := s.Publish
		return fmt.Sprintf(
			"ask the author of %s for a version like %s that accepts %s %s", p.Package, p.Version, p.Dependency.Package,
			s.version(),
		)
	}
	return "remove " + joinList(textsOf(
		s.Remove, func(r dependency.Root) string { return strings.TrimSpace(r.Package + " " + shorten(r.Constraint)) },
	), "and")
}

// clauses returns changes as clauses, all versions to provide in one and all removals in
// another one.
func clauses(all []Suggestion) []string {
	var out, provided []string
	var removed []dependency.Root
	for _, s := range all {
		switch {
		case s.Provide != nil:
			provided = append(provided, s.provided())
		case s.Remove != nil:
			removed = append(removed, s.Remove...)
		default:
			out = append(out, s.String())
		}
	}
	if len(provided) > 0 {
		out = append(out, "push or mirror "+joinList(provided, "and"))
	}
	if len(removed) > 0 {
		out = append(out, Suggestion{Remove: removed}.String())
	}
	return out
}

// provided returns the version that Provide adds.
func (s Suggestion) provided() string { return s.Provide.Package + " " + s.version() }

// String returns the movement as a phrase.
func (m Movement) String() string {
	return fmt.Sprintf("%s from %s to %s%s", m.Package, m.From, m.To, olderNote(m.Older))
}

// version returns To without the digest of a tag.
func (s Suggestion) version() string {
	return cmp.Or(version.ParsePin(s.To).Tag, s.To) + olderNote(s.Older)
}

func olderNote(older bool) string {
	if older {
		return " (older)"
	}
	return ""
}

// textsOf returns the texts of some values.
func textsOf[T any](all []T, text func(T) string) []string {
	var out []string
	for _, x := range all {
		out = append(out, text(x))
	}
	return out
}

// Apply returns the changed problem. It does not modify p.
func (s Suggestion) Apply(p Problem) Problem {
	p.Roots = slices.Clone(p.Roots)
	switch {
	case s.Relax != nil:
		for i := range p.Roots {
			if p.Roots[i] == *s.Relax {
				p.Roots[i].Constraint, p.Roots[i].Exact = s.To, true
			}
		}
	case s.Move != nil:
		p.Moves = Freely
	case s.Provide != nil:
		p.Source = providedSource{p.Source, s.Provide.Package, s.To}
	case s.Publish != nil:
		p.Source = publishedSource{p.Source, *s.Publish, s.To}
	}
	for _, one := range s.All {
		p = one.Apply(p)
	}
	p.Roots = exclude(p.Roots, s.Remove)
	return p
}

// providedSource is a source with an additional version, which has no dependencies.
type providedSource struct {
	Source
	pkg, version string
}

// Versions returns the versions of the source and the provided one.
func (s providedSource) Versions(pkg string) ([]string, error) {
	tags, err := s.Source.Versions(pkg)
	if pkg != s.pkg || err != nil && !notFound(err) {
		return tags, err
	}
	if version.ParsePin(s.version).Tag == "" {
		return tags, err
	}
	return append(slices.Clone(tags), s.version), nil
}

// Dependencies returns none for the provided version.
func (s providedSource) Dependencies(pkg, version string) ([]dependency.Dependency, error) {
	if pkg == s.pkg && version == s.version {
		return nil, nil
	}
	return s.Source.Dependencies(pkg, version)
}

// publishedSource is a source in which one version of a package has a different constraint
// on a dependency, or does not have the dependency.
type publishedSource struct {
	Source
	publication Publication
	to          string
}

// Dependencies returns the dependencies of the source, with the changed one.
func (s publishedSource) Dependencies(pkg, version string) ([]dependency.Dependency, error) {
	deps, err := s.Source.Dependencies(pkg, version)
	if err != nil || pkg != s.publication.Package || version != s.publication.Version {
		return deps, err
	}
	return s.publication.change(deps, s.to), nil
}

// change returns dependencies with a different constraint on one of them, or without it if
// the constraint is empty.
func (p Publication) change(deps []dependency.Dependency, to string) []dependency.Dependency {
	deps = slices.Clone(deps)
	for i := range deps {
		if deps[i] == p.Dependency {
			deps[i].Constraint = to
		}
	}
	return slices.DeleteFunc(
		deps, func(d dependency.Dependency) bool { return to == "" && d.Package == p.Dependency.Package },
	)
}

// sameOrder compares roots in the sort order of a search.
func sameOrder(a, b dependency.Root) int {
	return cmp.Or(
		cmp.Compare(a.Package, b.Package), cmp.Compare(a.By, b.By), cmp.Compare(a.Constraint, b.Constraint),
		cmp.Compare(strconv.FormatBool(a.Optional), strconv.FormatBool(b.Optional)),
		cmp.Compare(strconv.FormatBool(a.Exact), strconv.FormatBool(b.Exact)),
	)
}
