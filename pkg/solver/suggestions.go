package solver

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

const (
	// maxSuggestions is the number of suggestions in an explanation.
	maxSuggestions = 5
	// maxRelaxed is the number of suggestions among them that change a request.
	maxRelaxed = 3
)

// suggester collects changes that make the problem solvable.
type suggester struct {
	*explainer
	problem Problem // of the explainer, or without the roots of other conflicts
	search  *search // of the proof
	facts   []*incompatibility
	found   []Suggestion
}

// suggestions returns changes that make the whole problem solvable, given the proof of the
// first of some independent conflicts.
func (x *explainer) suggestions(s *search, proof *incompatibility, conflicts [][]dependency.Root) []Suggestion {
	if len(conflicts) == 1 {
		y := x.suggester(s, proof, x.problem)
		y.collect(conflicts[0])
		if len(y.found) == 0 {
			y.relaxSeveral(conflicts[0])
		}
		if len(y.found) == 0 {
			y.remove(conflicts)
		}
		return y.found[:min(len(y.found), maxSuggestions)]
	}
	y := x.suggester(s, proof, x.problem)
	y.combine(conflicts)
	y.remove(conflicts)
	return y.found
}

func (x *explainer) suggester(s *search, proof *incompatibility, p Problem) *suggester {
	p.movable = nil
	return &suggester{explainer: x, problem: p, search: s, facts: proofFacts(proof)}
}

// collect tries all single changes that concern a conflict, smallest first.
func (y *suggester) collect(core []dependency.Root) {
	var newer, highest, older []Suggestion
	for _, root := range core {
		nearest, other := y.relax(root)
		switch {
		case nearest == nil:
		case nearest.Older:
			older = append(older, *nearest)
		default:
			newer = append(newer, *nearest)
		}
		if other != nil {
			highest = append(highest, *other)
		}
	}
	relaxed := slices.Concat(newer, highest, older)
	y.found = append(y.found, relaxed[:min(len(relaxed), maxRelaxed)]...)
	y.move()
	y.provide()
	if len(mandatory(y.problem.Roots)) > 1 {
		for _, root := range mandatory(core) {
			y.keep(Suggestion{Remove: []dependency.Root{root}})
		}
	}
	y.publish()
}

// mandatory returns the roots that are not optional.
func mandatory(roots []dependency.Root) []dependency.Root {
	return slices.DeleteFunc(slices.Clone(roots), func(r dependency.Root) bool { return r.Optional })
}

// combine finds one change for each conflict, which are necessary together.
func (y *suggester) combine(conflicts [][]dependency.Root) {
	var all []Suggestion
	for i, core := range conflicts {
		rest := y.problem.Roots
		for j, other := range conflicts {
			if j != i {
				rest = exclude(rest, other)
			}
		}
		s, proof := y.exhaustive(core)
		if proof == nil {
			return
		}
		p := y.problem
		p.Roots = rest
		one := y.suggester(s, proof, p)
		one.collect(core)
		if len(one.found) == 0 {
			one.relaxSeveral(core)
		}
		if len(one.found) == 0 {
			one.remove([][]dependency.Root{core})
		}
		if len(one.found) == 0 {
			return
		}
		all = append(all, one.found[0])
	}
	y.keepAll(all)
}

// keepAll keeps changes together if they make the problem solvable, without the
// unnecessary ones, and moves each version to the nearest one.
func (y *suggester) keepAll(all []Suggestion) {
	if _, ok := y.try(Suggestion{All: all}); !ok {
		return
	}
	for i := len(all) - 1; i >= 0 && len(all) > 1; i-- {
		fewer := slices.Delete(slices.Clone(all), i, i+1)
		if _, ok := y.try(Suggestion{All: fewer}); ok {
			all = fewer
		}
	}
	for range 3 {
		changed := false
		for i := range all {
			if all[i].Relax == nil {
				continue
			}
			others := slices.Delete(slices.Clone(all), i, i+1)
			nearest := y.nearest(*all[i].Relax, others, orderFrom)
			if nearest != nil && (nearest.To != all[i].To || nearest.Older != all[i].Older) {
				all[i], changed = *nearest, true
			}
		}
		if !changed {
			break
		}
	}
	if len(all) == 1 {
		y.keep(all[0])
		return
	}
	y.keep(Suggestion{All: all})
}

// try applies a change and searches for a solution.
func (y *suggester) try(change Suggestion) (*search, bool) {
	s, err := y.solve(y.store.apply(change), change.Apply(y.problem))
	return s, err == nil
}

// apply returns a store with the facts that a change adds.
func (m *factStore) apply(change Suggestion) *factStore {
	switch {
	case change.Provide != nil:
		m = m.override(change.Provide.Package, change.To, &versionFacts{})
	case change.Publish != nil:
		p := *change.Publish
		if known := m.cachedDependencies(p.Package, version.ParsePin(p.Version)); known != nil {
			m = m.override(p.Package, p.Version, &versionFacts{deps: p.change(known.deps, change.To)})
		}
	}
	for _, one := range change.All {
		m = m.apply(one)
	}
	return m
}

// keep adds a change to the suggestions if it makes the problem solvable.
func (y *suggester) keep(change Suggestion) bool {
	_, ok := y.try(change)
	if ok {
		y.found = append(y.found, change)
	}
	return ok
}

// relax returns the change of a root to the nearest version that makes the problem
// solvable, and to the highest one with the same major version if that is another one.
func (y *suggester) relax(root dependency.Root) (nearest, highest *Suggestion) {
	if root.Constraint == "" {
		return nil, nil
	}
	nearest = y.nearest(root, nil, orderFrom)
	if nearest == nil || nearest.Older {
		return nearest, nil
	}
	highest = y.nearest(root, nil, func(v *variable, b base) []int { return v.sameMajorFrom(b, nearest.To) })
	return nearest, highest
}

// nearest returns the first version of a package in an order, for which the problem with
// some other changes is solvable if the root requires it.
func (y *suggester) nearest(root dependency.Root, others []Suggestion, order func(v *variable, b base) []int) *Suggestion {
	p := Suggestion{All: others}.Apply(y.problem)
	for i := range p.Roots {
		if p.Roots[i] == root {
			p.Roots[i].Constraint, p.Roots[i].Exact = "", false
		}
	}
	var found base
	p.preferred = &preference{root.Package, func(v *variable) []int {
		found = v.baseOf(root.Constraint, root.Exact, y.store)
		return order(v, found)
	}}
	s, err := y.solve(y.store.apply(Suggestion{All: others}), p)
	if err != nil {
		return nil
	}
	to, v := s.selected(root.Package)
	if to == nil {
		return nil
	}
	return &Suggestion{Relax: &root, To: to.String(), Older: v.olderThan(to, found)}
}

// base is the set of versions that a constraint accepts, or the version that it names if
// it accepts none.
type base struct {
	fit  set
	from *version.Version // the lowest accepted version; nil if unknown
}

var numberPattern = regexp.MustCompile(`\d+(\.\d+){0,2}(-[0-9A-Za-z.-]+)?`)

// baseOf returns the versions of a constraint.
func (v *variable) baseOf(text string, exact bool, store *factStore) base {
	c := store.constraint(text)
	if exact {
		text = store.exactTag(text)
		c = store.constraint(text)
	}
	b := base{fit: v.fitting(text, c)}
	for _, i := range b.fit.members() {
		if i >= v.first {
			b.from = &v.candidates[i].version
			return b
		}
	}
	b.from = namedVersion(strings.TrimPrefix(text, "tag "))
	return b
}

// namedVersion returns the first version that a text contains, or nil.
func namedVersion(text string) *version.Version {
	if p := version.ParsePin(text); p.Digest != "" {
		text = p.Tag
	}
	found := numberPattern.FindString(text)
	if found == "" {
		return nil
	}
	full, err := semver.NewVersion(found)
	if err != nil {
		return nil
	}
	parsed := version.Parse(full.String())
	if parsed.Unusable() != "" {
		return nil
	}
	return &parsed
}

// orderFrom lists the versions that a constraint does not accept: releases above the base,
// nearest first, releases below it, nearest first, and then prereleases likewise.
func orderFrom(v *variable, b base) []int {
	var out []int
	for _, prerelease := range []bool{false, true} {
		above, below := v.around(b)
		for _, i := range slices.Concat(above, below) {
			if v.candidates[i].version.Prerelease() == prerelease {
				out = append(out, i)
			}
		}
	}
	return out
}

// around lists the versions above a base, lowest first, and below it, highest first. If the
// base has no version, all versions are above it, highest first.
func (v *variable) around(b base) (above, below []int) {
	for i := v.first; i < v.size; i++ {
		switch {
		case b.fit.has(i):
		case b.from == nil || v.candidates[i].version.Compare(b.from) >= 0:
			above = append(above, i)
		default:
			below = append(below, i)
		}
	}
	slices.Reverse(below)
	if b.from == nil {
		slices.Reverse(above)
	}
	return above, below
}

// sameMajorFrom lists the releases above a version that have the major version of the
// base, highest first.
func (v *variable) sameMajorFrom(b base, pin string) []int {
	if b.from == nil {
		return nil
	}
	at := version.Parse(version.ParsePin(pin).Tag)
	above, _ := v.around(b)
	slices.Reverse(above)
	return slices.DeleteFunc(above, func(i int) bool {
		x := &v.candidates[i].version
		return x.Prerelease() || x.Major() != b.from.Major() || x.Compare(&at) <= 0
	})
}

func (v *variable) olderThan(c *candidate, b base) bool {
	return b.from != nil && c.version.Unusable() == "" && c.version.Compare(b.from) < 0
}

// relaxSeveral looks for other versions for several roots of a conflict.
func (y *suggester) relaxSeveral(core []dependency.Root) {
	p := y.problem
	p.Roots = slices.Clone(p.Roots)
	for i, root := range p.Roots {
		if slices.Contains(core, root) {
			p.Roots[i].Constraint, p.Roots[i].Exact = "", false
		}
	}
	s, err := y.solve(y.store, p)
	if err != nil {
		return
	}
	var all []Suggestion
	for _, root := range core {
		if to, _ := s.selected(root.Package); to != nil && !root.Accepts(to.String()) {
			all = append(all, Suggestion{Relax: &root, To: to.String()})
		}
	}
	if len(all) > 0 {
		y.keepAll(all)
	}
}

// move suggests to lift the restriction on moves, if the conflict rests on it.
func (y *suggester) move() {
	if !slices.ContainsFunc(y.facts, func(c *incompatibility) bool { return c.cause.kind == installedPin }) {
		return
	}
	s, ok := y.try(Suggestion{Move: []Movement{}})
	if !ok {
		return
	}
	out := Suggestion{Move: []Movement{}}
	for _, v := range s.variables[1:] {
		if i := v.state.only(); v.installed > 0 && i > 0 && i != v.installed {
			older := v.first <= v.installed && i < v.installed
			out.Move = append(out.Move, Movement{v.name, v.candidates[v.installed].name(), v.candidates[i].name(), older})
		}
	}
	slices.SortFunc(out.Move, func(a, b Movement) int { return cmp.Compare(a.Package, b.Package) })
	y.found = append(y.found, out)
}

// provide suggests to push or mirror versions that no registry has: one if that is enough,
// or else as many as the remaining conflicts lack.
func (y *suggester) provide() {
	const most = 4
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
		if to == nil {
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
	if v.size > 1 && !strings.HasPrefix(v.candidates[v.size-1].Tag, "v") {
		prefix = ""
	}
	n := named.Semver()
	for _, x := range []semver.Version{*n, n.IncPatch(), n.IncMinor(), n.IncMajor()} {
		tag := prefix + x.String()
		if version.ParseConstraint(text).Accepts(tag) && !v.knows(version.Pin{Tag: tag}) {
			return tag
		}
	}
	return ""
}

// publish suggests to ask authors for versions with other dependencies. The other version
// of the dependency is never below the versions that the constraint accepts.
func (y *suggester) publish() {
	for _, c := range y.facts {
		if len(y.found) >= maxSuggestions {
			return
		}
		if c.isDependency() && c.cause.from != c.cause.to {
			y.publishFact(c)
		}
	}
}

func (y *suggester) publishFact(c *incompatibility) {
	from, _ := c.find(c.cause.from)
	v, to := y.search.variables[c.cause.from], y.search.variables[c.cause.to]
	members := from.set.members()
	for _, i := range slices.Backward(members[max(0, len(members)-2):]) {
		known := y.store.cachedDependencies(v.name, v.candidates[i].Pin)
		if known == nil {
			continue
		}
		for _, d := range known.deps {
			if d.Package != to.name || d.Optional != (c.cause.kind == optionalDependency) || !slices.Contains(c.cause.texts, d.Constraint) {
				continue
			}
			p := &Publication{v.name, v.candidates[i].String(), d}
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
			return nil // Whether a version is older than the required one is unknown.
		}
		slices.SortStableFunc(above, func(i, j int) int { return prereleaseLast(v, i) - prereleaseLast(v, j) })
		return above
	}}
	s, err := y.solve(y.store.override(p.Package, p.Version, &versionFacts{deps: open}), problem)
	if err != nil {
		return ""
	}
	c, _ := s.selected(d.Package)
	return c.String()
}

func prereleaseLast(v *variable, i int) int {
	if v.candidates[i].version.Prerelease() {
		return 1
	}
	return 0
}

// remove suggests to remove a minimal set of roots from all conflicts.
func (y *suggester) remove(conflicts [][]dependency.Root) {
	all := mandatory(slices.Concat(conflicts...))
	if _, ok := y.try(Suggestion{Remove: all}); !ok {
		all = mandatory(y.problem.Roots)
		if _, ok := y.try(Suggestion{Remove: all}); !ok {
			return
		}
	}
	for i := len(all) - 1; i >= 0; i-- {
		fewer := slices.Delete(slices.Clone(all), i, i+1)
		if _, ok := y.try(Suggestion{Remove: fewer}); ok {
			all = fewer
		}
	}
	if len(all) > 0 {
		y.found = append(y.found, Suggestion{Remove: all})
	}
}

// selected returns the selected version of a package, or nil.
func (s *search) selected(pkg string) (*candidate, *variable) {
	n, ok := s.numbers[pkg]
	if !ok {
		return nil, nil
	}
	v := s.variables[n]
	if i := v.state.only(); i > 0 {
		return &v.candidates[i], v
	}
	return nil, v
}
