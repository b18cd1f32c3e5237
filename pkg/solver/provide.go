package solver

import (
	"errors"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// provide suggests pushing or mirroring versions that no registry has: one if that is
// enough, and otherwise all versions that the remaining conflicts lack.
func (y *suggester) provide() {
	const most = 10
	lacking := y.lacking(y.search, y.facts)
	for _, one := range lacking {
		if y.keep(one) {
			return
		}
	}
	for all := lacking; len(all) > 0 && len(all) <= most; {
		change := Suggestion{All: all}
		s, err := y.solve(y.store.apply(change), change.Apply(y.problem))
		if err == nil {
			y.keepAll(all)
			return
		}
		var none *unsolvable
		if !errors.As(err, &none) {
			return
		}
		more := y.lacking(s, proofFacts(none.proof))
		if len(more) == 0 {
			return
		}
		all = append(slices.Clip(all), more...)
	}
}

// lacking returns the versions that the facts of a proof require and that do not exist.
func (y *suggester) lacking(s *search, facts []*incompatibility) []Suggestion {
	var out []Suggestion
	for _, c := range facts {
		to, text := s.missing(c)
		if to == nil || to.virtual != nil {
			continue
		}
		version := to.newVersion(text, y.store.constraint(text))
		if version == "" {
			continue
		}
		change := Suggestion{Provide: &dependency.Dependency{Package: to.name, Constraint: text}, To: version}
		if !slices.ContainsFunc(out, func(s Suggestion) bool { return s.String() == change.String() }) {
			out = append(out, change)
		}
	}
	return out
}

// missing returns the package of which a required version does not exist, and the
// constraint.
func (s *search) missing(c *incompatibility) (*variable, string) {
	if len(c.terms) != 1 {
		return nil, ""
	}
	switch c.cause.kind {
	case rootRequirement:
		r := s.roots[c.cause.root]
		if !r.Optional {
			return s.variables[s.numbers[r.Package]], r.Constraint
		}
	case requiredDependency:
		if c.cause.from != c.cause.to {
			return s.variables[c.cause.to], c.cause.texts[0]
		}
	}
	return nil, ""
}

// newVersion returns a version that a constraint accepts and that is not listed, or "".
func (v *variable) newVersion(text string, c *version.Constraint) string {
	if c.Pin() != nil {
		return c.Pin().String()
	}
	named := namedVersion(text)
	if named == nil {
		first := version.Parse("v1.0.0")
		named = &first
	}
	prefix := "v"
	if v.size > 1 && !strings.HasPrefix(v.candidates[v.size-1].version.Tag, "v") {
		prefix = ""
	}
	n := named.Semver()
	next := []semver.Version{*n, n.IncPatch(), n.IncMinor(), n.IncMajor()}
	if n.String() == "0.0.0" {
		// A first version is v0.1.0, or v0.0.1 for a constraint such as v0.0.
		next = []semver.Version{n.IncMinor(), n.IncPatch(), n.IncMajor()}
	}
	for _, x := range next {
		tag := prefix + x.String()
		if version.ParseConstraint(text).Accepts(tag) && !v.knows(version.Pin{Tag: tag}) {
			return tag
		}
	}
	return ""
}

// publish suggests asking package authors for versions with other dependencies. It never
// suggests a version of a dependency below the versions that the constraint accepts.
func (y *suggester) publish() {
	for _, c := range y.facts {
		if len(y.found) >= maxSuggestions {
			return
		}
		if c.isDependency() && c.cause.from != c.cause.to && y.search.variables[c.cause.from].virtual == nil {
			y.publishFact(c)
		}
	}
}

func (y *suggester) publishFact(c *incompatibility) {
	from, _ := c.find(c.cause.from)
	v, to := y.search.variables[c.cause.from], y.search.variables[c.cause.to]
	members := from.set.members()
	for _, i := range slices.Backward(members[max(0, len(members)-2):]) {
		known := y.store.cachedDependencies(v.name, v.candidates[i].pin())
		if known == nil {
			continue
		}
		for _, d := range known.deps {
			if d.Package != to.name || d.Optional != (c.cause.kind == optionalDependency) ||
				!slices.Contains(c.cause.texts, d.Constraint) {
				continue
			}
			p := &Publication{v.name, v.candidates[i].pin().String(), d}
			if version := y.acceptable(p); version != "" && y.keep(Suggestion{Publish: p, To: version}) {
				return
			}
			if to.size == 1 && y.keep(Suggestion{Publish: p}) {
				return
			}
		}
	}
}

// acceptable returns the lowest version of a dependency above all versions that its
// constraint accepts, for which the problem is solvable if the dependency accepts it.
func (y *suggester) acceptable(p *Publication) string {
	d := p.Dependency
	known := y.store.cachedDependencies(p.Package, version.ParsePin(p.Version))
	open := slices.Clone(known.deps)
	for i := range open {
		if open[i] == d {
			open[i].Constraint = ""
		}
	}
	problem := y.problem
	problem.Roots = append(slices.Clone(problem.Roots), dependency.Root{Package: d.Package})
	problem.preferred = &preference{d.Package, func(v *variable) []int {
		b := v.baseOf(d.Constraint, false, y.store)
		above, _ := v.around(b)
		if b.from == nil {
			return nil // It is unknown whether a version is older than the required one.
		}
		slices.SortStableFunc(above, func(i, j int) int { return prereleaseLast(v, i) - prereleaseLast(v, j) })
		return above
	}}
	s, err := y.solve(y.store.override(p.Package, p.Version, &versionFacts{deps: open}), problem)
	if err != nil {
		return ""
	}
	c, _ := s.selected(d.Package)
	return c.pin().String()
}

func prereleaseLast(v *variable, i int) int {
	if v.candidates[i].version.Prerelease() {
		return 1
	}
	return 0
}
