package solve

import (
	"cmp"
	"slices"
)

// What the search for remedies may take.
const (
	remedyBudget = DefaultBudget / 25 // of each attempt
	attempts     = 25
	enough       = 3 // edits that an explanation ends with, at most
)

// A remedy tries changes of a problem.
type remedy struct {
	memory  *memory
	problem Problem
	left    int
	found   []Edit
}

// edits looks for changes that make a problem solvable, among the reasons why it is
// not. A root that asks for something else comes first, then leaving one out, then
// what only the author of a package can do.
func (m *memory) edits(p *Problem, s *search, proof *incompatibility) []Edit {
	r := &remedy{memory: m, problem: *p, left: attempts}
	r.problem.Source = recalled{m}
	r.problem.Budget = remedyBudget
	reasons := leaves(proof)
	roots := involved(s, reasons)
	for _, root := range roots {
		r.relax(root)
	}
	if slices.ContainsFunc(reasons, func(c *incompatibility) bool { return c.cause.kind == held }) {
		r.move()
	}
	if len(wishes(p.Roots)) > 1 {
		for _, root := range wishes(roots) {
			r.keep(Edit{Remove: []Root{root}})
		}
	}
	for _, c := range reasons {
		if len(r.found) >= enough {
			break
		}
		if c.between() {
			r.publish(s, c)
		}
	}
	if len(r.found) == 0 {
		r.relaxAll()
	}
	if len(r.found) == 0 {
		r.removeMany()
	}
	return r.found[:min(len(r.found), enough)]
}

// leaves are the facts on which a proof rests, each once, in the order in which the
// proof names them.
func leaves(proof *incompatibility) []*incompatibility {
	var out []*incompatibility
	seen := map[*incompatibility]bool{}
	open := []*incompatibility{proof}
	for len(open) > 0 {
		c := open[len(open)-1]
		open = open[:len(open)-1]
		if seen[c] {
			continue
		}
		seen[c] = true
		if c.cause.kind == derived {
			open = append(open, c.cause.right, c.cause.left)
		} else {
			out = append(out, c)
		}
	}
	return out
}

// involved are the roots among the reasons.
func involved(s *search, reasons []*incompatibility) []Root {
	var out []Root
	for _, c := range reasons {
		if c.cause.kind == asked {
			out = append(out, s.roots[c.cause.root])
		}
	}
	slices.SortFunc(out, sameOrder)
	return slices.Compact(out)
}

// wishes are the roots that ask for a package.
func wishes(roots []Root) []Root {
	return slices.DeleteFunc(slices.Clone(roots), func(r Root) bool { return r.Optional })
}

// solve tries a changed problem.
func (r *remedy) solve(p Problem) (*search, bool) {
	if r.left == 0 {
		return nil, false
	}
	r.left--
	m := r.memory
	if _, same := p.Source.(recalled); !same {
		m = newMemory(p.Source)
	}
	s, err := m.solve(&p)
	return s, err == nil && s.cycle() == nil
}

// keep notes an edit that makes the problem solvable.
func (r *remedy) keep(e Edit) bool {
	_, ok := r.solve(e.Apply(r.problem))
	if ok {
		r.found = append(r.found, e)
	}
	return ok
}

// relax looks for another version that a root could ask for.
func (r *remedy) relax(root Root) {
	if root.Constraint == "" {
		return
	}
	if s, ok := r.solve(r.without(root)); ok {
		if to := s.picked(root.Package); to != "" {
			r.keep(Edit{Relax: &root, To: to})
		}
	}
}

// without is the problem without the constraints of some roots.
func (r *remedy) without(roots ...Root) Problem {
	open := r.problem
	open.Roots = slices.Clone(open.Roots)
	for i, root := range open.Roots {
		if slices.Contains(roots, root) {
			open.Roots[i].Constraint, open.Roots[i].Exact = "", false
		}
	}
	return open
}

// relaxAll looks for other versions that several roots could ask for, no more of them
// than it takes.
func (r *remedy) relaxAll() {
	s, ok := r.solve(r.without(r.problem.Roots...))
	if !ok {
		return
	}
	var all []Edit
	for _, root := range slices.SortedFunc(slices.Values(r.problem.Roots), sameOrder) {
		if to := s.picked(root.Package); to != "" && !root.accepts(to) {
			all = append(all, Edit{Relax: &root, To: to})
		}
	}
	for i := len(all) - 1; i >= 0; i-- {
		fewer := slices.Delete(slices.Clone(all), i, i+1)
		if _, ok := r.solve(Edit{All: fewer}.Apply(r.problem)); ok {
			all = fewer
		}
	}
	if len(all) > 0 {
		r.keep(Edit{All: all})
	}
}

// accepts reports whether a version, named by its tag, its digest or both, is what the
// root asks for.
func (r Root) accepts(version string) bool {
	if r.Exact {
		return parsePin(r.Constraint).names(parsePin(version))
	}
	return ParseConstraint(r.Constraint).Accepts(version)
}

// move tells which installed packages would move, if they might.
func (r *remedy) move() {
	s, ok := r.solve(Edit{Move: []Movement{}}.Apply(r.problem))
	if !ok {
		return
	}
	var e Edit
	for _, v := range s.variables[1:] {
		if i := v.state.only(); v.installed > 0 && i > 0 && i != v.installed {
			e.Move = append(e.Move, Movement{v.name, v.candidates[v.installed].name(), v.candidates[i].name()})
		}
	}
	slices.SortFunc(e.Move, func(a, b Movement) int { return cmp.Compare(a.Package, b.Package) })
	r.found = append(r.found, e)
}

// publish looks for a version of a dependency that a package could accept, or else
// tries without the dependency.
func (r *remedy) publish(s *search, c *incompatibility) {
	from, _ := c.find(c.cause.from)
	v := s.variables[c.cause.from]
	members := from.set.members()
	for _, i := range slices.Backward(members[max(0, len(members)-2):]) {
		known := s.memory.known(v.name, v.candidates[i].pin)
		if known == nil {
			continue
		}
		for _, d := range known.deps {
			if d.Package != s.variables[c.cause.to].name || d.Optional != (c.cause.kind == suited) || !slices.Contains(c.cause.texts, d.Constraint) {
				continue
			}
			e := Edit{Publish: &Publication{v.name, v.candidates[i].String(), d}}
			for _, e.To = range []string{"*", ">=0.0.0-0"} { // Releases, and then prereleases.
				if found, ok := r.solve(e.Apply(r.problem)); ok {
					if e.To = found.picked(d.Package); e.To != "" && r.keep(e) {
						return
					}
				}
			}
			if e.To = ""; s.variables[c.cause.to].size == 1 && r.keep(e) {
				return
			}
		}
	}
}

// removeMany leaves out one root after the other until the rest has a solution.
func (r *remedy) removeMany() {
	var e Edit
	s := newSearch(&r.problem, r.memory, false)
	r.left = max(r.left, len(s.roots))
	for _, root := range wishes(s.roots) {
		e.Remove = append(e.Remove, root)
		if r.keep(e) {
			return
		}
	}
}

// picked is the version that was chosen of a package, or nothing.
func (s *search) picked(pkg string) string {
	n, ok := s.numbers[pkg]
	if !ok {
		return ""
	}
	v := s.variables[n]
	if i := v.state.only(); i > 0 {
		return v.candidates[i].String()
	}
	return ""
}

// recalled is what a memory knows, as a source.
type recalled struct{ memory *memory }

// Versions lists what the memory lists.
func (r recalled) Versions(pkg string) ([]string, error) {
	l, err := r.memory.listing(pkg)
	if err != nil {
		return nil, err
	}
	if l.missing != nil {
		return nil, l.missing
	}
	out := make([]string, 0, len(l.pins))
	for _, p := range l.pins {
		out = append(out, p.String())
	}
	return out, nil
}

// Dependencies are what the memory knows.
func (r recalled) Dependencies(pkg, version string) ([]Dependency, error) {
	n, err := r.memory.dependencies(pkg, parsePin(version))
	if err != nil {
		return nil, err
	}
	return n.deps, n.gone
}
