package solve

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// An Edit is a change of a problem. Exactly one of its parts is set.
type Edit struct {
	// Relax makes a root ask for the tag or digest To instead.
	Relax *Root
	// Remove leaves roots out.
	Remove []Root
	// Move lets installed packages move freely; these would.
	Move []Movement
	// Publish makes one version of a package, which its author would have to
	// publish, accept To of a dependency.
	Publish *Publication
	To      string
	// All are changes of which each alone is not enough.
	All []Edit
}

// A Movement is another version of a package that is installed.
type Movement struct{ Package, From, To string }

// A Publication is a version of a package with one of its dependencies.
type Publication struct {
	Package, Version string
	Dependency       Dependency
}

// String says what is to be done, in one clause.
func (e Edit) String() string {
	switch {
	case e.Relax != nil && e.Relax.Optional:
		return fmt.Sprintf("let %s work with %s %s", e.Relax.asker(), e.Relax.Package, e.to())
	case e.Relax != nil && e.Relax.Name == "":
		return fmt.Sprintf("ask for %s %s instead of %s", e.Relax.Package, e.to(), e.Relax.Constraint)
	case e.Relax != nil:
		return fmt.Sprintf("let %s ask for %s %s instead of %s", e.Relax.asker(), e.Relax.Package, e.to(), e.Relax.Constraint)
	case e.Move != nil:
		return "move " + list(few(words(e.Move, func(m Movement) string { return fmt.Sprintf("%s from %s to %s", m.Package, m.From, m.To) })), "and")
	case e.All != nil:
		return list(words(e.All, Edit.String), ", and")
	case e.Publish != nil && e.To == "":
		p := e.Publish
		return fmt.Sprintf("ask the author of %s for a version like %s that does without %s", p.Package, p.Version, p.Dependency.Package)
	case e.Publish != nil:
		p := e.Publish
		return fmt.Sprintf("ask the author of %s for a version like %s that accepts %s %s", p.Package, p.Version, p.Dependency.Package, e.to())
	}
	return "do without " + list(words(e.Remove, func(r Root) string { return strings.TrimSpace(r.Package + " " + r.Constraint) }), "and")
}

// to is To as people call it: by its tag, if it has one.
func (e Edit) to() string { return cmp.Or(parsePin(e.To).tag, e.To) }

// words says each of some things.
func words[T any](all []T, say func(T) string) []string {
	var out []string
	for _, x := range all {
		out = append(out, say(x))
	}
	return out
}

// Apply makes the change. The problem itself stays as it is.
func (e Edit) Apply(p Problem) Problem {
	p.Roots = slices.Clone(p.Roots)
	switch {
	case e.Relax != nil:
		if i := slices.Index(p.Roots, *e.Relax); i >= 0 {
			p.Roots[i].Constraint, p.Roots[i].Exact = e.To, true
		}
	case e.Move != nil:
		p.Moves = Freely
	case e.Publish != nil:
		p.Source = published{p.Source, *e.Publish, e.To}
	}
	for _, one := range e.All {
		p = one.Apply(p)
	}
	p.Roots = slices.DeleteFunc(p.Roots, func(r Root) bool { return slices.Contains(e.Remove, r) })
	return p
}

// published is a source in which one version of a package has another constraint
// on a dependency, or does without it.
type published struct {
	Source
	publication Publication
	to          string
}

// Dependencies are those of the source but for one.
func (s published) Dependencies(pkg, version string) ([]Dependency, error) {
	deps, err := s.Source.Dependencies(pkg, version)
	if err != nil || pkg != s.publication.Package || version != s.publication.Version {
		return deps, err
	}
	deps = slices.Clone(deps)
	for i := range deps {
		if deps[i] == s.publication.Dependency {
			deps[i].Constraint = s.to
		}
	}
	return slices.DeleteFunc(deps, func(d Dependency) bool {
		return s.to == "" && d.Package == s.publication.Dependency.Package
	}), nil
}

// sameOrder compares roots as a search sorts them.
func sameOrder(a, b Root) int {
	return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Constraint, b.Constraint), cmp.Compare(strconv.FormatBool(a.Optional), strconv.FormatBool(b.Optional)))
}
