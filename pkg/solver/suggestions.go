package solver

import (
	"cmp"
	"slices"

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

// suggestions returns changes that make the whole problem solvable, given independent
// conflicts and the proof of the first one.
func (x *explainer) suggestions(s *search, proof *incompatibility, conflicts [][]dependency.Root) []Suggestion {
	y := x.suggester(s, proof, x.problem)
	if len(conflicts) == 1 {
		y.collect(conflicts[0])
	} else {
		y.combine(conflicts)
	}
	if len(y.found) == 0 || len(conflicts) > 1 {
		removal := y.removal(conflicts)
		if len(y.found) == 0 {
			y.relaxSeveral(removal)
		}
		if len(removal) > 0 {
			y.found = append(y.found, Suggestion{Remove: removal})
		}
	}
	return y.found[:min(len(y.found), maxSuggestions)]
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

// combine finds a set of changes, one for each conflict.
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
			return
		}
		all = append(all, one.found[0])
	}
	y.keepAll(all)
}

// keepAll adds a set of changes as one suggestion if together they make the problem
// solvable. It first removes unnecessary changes and moves each version as near as
// possible.
func (y *suggester) keepAll(all []Suggestion) {
	const most = 10 // Usually, two rounds are enough.
	if _, ok := y.try(Suggestion{All: all}); !ok {
		return
	}
	all = y.necessary(all)
	for range most {
		nearer, changed := y.nearer(all)
		if !changed {
			break
		}
		all = y.necessary(nearer)
	}
	if len(all) == 1 {
		y.keep(all[0])
		return
	}
	y.keep(Suggestion{All: all})
}

// necessary removes changes without which the problem is still solvable, last first.
func (y *suggester) necessary(all []Suggestion) []Suggestion {
	for i := len(all) - 1; i >= 0 && len(all) > 1; i-- {
		fewer := slices.Delete(slices.Clone(all), i, i+1)
		if _, ok := y.try(Suggestion{All: fewer}); ok {
			all = fewer
		}
	}
	return all
}

// nearer moves each version to the nearest one with which the problem is solvable, given
// the other changes, and reports whether that changes any of them.
func (y *suggester) nearer(all []Suggestion) (_ []Suggestion, changed bool) {
	all = slices.Clone(all)
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
	return all, changed
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

// move suggests lifting the restriction on moves, if the conflict depends on it.
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

// removal returns a minimal set of roots without which the problem is solvable, or nil.
func (y *suggester) removal(conflicts [][]dependency.Root) []dependency.Root {
	all := mandatory(slices.Concat(conflicts...))
	if _, ok := y.try(Suggestion{Remove: all}); !ok {
		all = mandatory(y.problem.Roots)
		if _, ok := y.try(Suggestion{Remove: all}); !ok {
			return nil
		}
	}
	for i := len(all) - 1; i >= 0; i-- {
		fewer := slices.Delete(slices.Clone(all), i, i+1)
		if _, ok := y.try(Suggestion{Remove: fewer}); ok {
			all = fewer
		}
	}
	return all
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
