package solver

import (
	"math"
	"sort"
)

// propagate performs unit propagation: if all terms but one of an incompatibility are
// satisfied, the last one is excluded. It resolves conflicts that occur.
func (s *search) propagate() error {
	for len(s.changed) > 0 {
		pkg := s.changed[len(s.changed)-1]
		s.changed = s.changed[:len(s.changed)-1]
		s.variables[pkg].queued = false
		facts := s.variables[pkg].incompatibilities
		for i := len(facts) - 1; i >= 0; i-- {
			open, all := s.evaluate(facts[i])
			if !all && open < 0 {
				if open == never && s.level == 0 && s.irrelevant(facts[i]) {
					s.drop(pkg, i)
				}
				continue
			}
			fact := facts[i]
			if !all {
				fact = s.generalize(fact, open)
				t := fact.terms[open]
				if now := s.variables[t.pkg].state.without(t.set); !now.empty() {
					s.assign(t.pkg, now, fact)
					continue
				}
			}
			if err := s.resolveConflict(fact); err != nil {
				return err
			}
			s.enqueue(pkg) // new incompatibilities can also be satisfied at the lower level
			break
		}
		if s.work > s.budget {
			return errBudget
		}
	}
	return nil
}

// generalize merges an incompatibility that excludes versions of the dependent package with
// similar ones.
func (s *search) generalize(fact *incompatibility, open int) *incompatibility {
	if s.exhaustive && fact.isDependency() && fact.terms[open].pkg == fact.cause.from {
		return s.mergeDependencies(fact, s.variables[fact.cause.to].state)
	}
	return fact
}

// irrelevant reports whether an incompatibility that can no longer be satisfied is not needed
// for reports.
func (s *search) irrelevant(c *incompatibility) bool {
	if s.exhaustive || !c.isDependency() {
		return !s.exhaustive && c.cause.kind == derived
	}
	from, _ := c.find(c.cause.from)
	return s.variables[c.cause.from].state.disjoint(from.set)
}

// drop removes an incompatibility from the list of a package. Most incompatibilities of a
// package with thousands of versions soon concern excluded versions.
func (s *search) drop(pkg, i int) {
	v := s.variables[pkg]
	last := len(v.incompatibilities) - 1
	v.incompatibilities[i] = v.incompatibilities[last]
	v.incompatibilities = v.incompatibilities[:last]
}

// Results of evaluate for incompatibilities without a single undecided term.
const (
	several = -1 // terms are undecided
	never   = -2 // a term cannot be satisfied
)

// evaluate reports whether all terms of an incompatibility are satisfied, or else returns the
// only undecided term. It returns several or never if there is no single one.
func (s *search) evaluate(c *incompatibility) (open int, all bool) {
	open = several
	for i := range c.terms {
		t := &c.terms[i]
		state := s.variables[t.pkg].state
		s.work += len(state)
		switch inside, outside := state.split(t.set); {
		case !outside:
			continue
		case !inside:
			return never, false
		case open >= 0:
			return several, false
		}
		open = i
	}
	return open, open < 0
}

// assign restricts the state of a package to a set and records the reason in the partial
// solution.
func (s *search) assign(pkg int, now set, why *incompatibility) {
	v := s.variables[pkg]
	s.work += 4 * len(now)
	s.assignments = append(s.assignments, assignment{pkg: pkg, before: v.state, now: now, level: s.level, cause: why})
	v.history = append(v.history, len(s.assignments)-1)
	v.state = now
	s.enqueueDecision(pkg)
	s.enqueue(pkg)
}

// readNext loads the dependencies of the next best versions of packages that a far backjump deselected
// and from which its conclusions exclude versions. Often the conflict excludes them too, and each of
// them would cost another far backjump.
func (s *search) readNext() error {
	for ; s.narrowed < len(s.assignments); s.narrowed++ {
		pkg := s.assignments[s.narrowed].pkg
		v := s.variables[pkg]
		if !v.deselected || v.settled() {
			continue
		}
		i := v.best(v.state, func() bool { return s.constrained(pkg) })
		if i == 0 || v.read.has(i) {
			continue
		}
		if err := s.loadDependencies(pkg, i); err != nil {
			return err
		}
		s.enqueue(pkg)
		if err := s.propagate(); err != nil {
			return err
		}
	}
	s.narrowed = math.MaxInt
	return nil
}

// enqueue schedules a package for unit propagation.
func (s *search) enqueue(pkg int) {
	if v := s.variables[pkg]; !v.queued {
		v.queued = true
		s.changed = append(s.changed, pkg)
	}
}

// farJump is the number of decision levels from which on a backjump is expensive, because nearly all
// of their decisions are made again.
const farJump = 100

// resolveConflict derives the root cause of a conflict, and jumps back to the decision level
// at which the root cause excludes a version.
func (s *search) resolveConflict(conflict *incompatibility) error {
	s.conflicts++
	if s.exhaustive && conflict.isDependency() {
		conflict = s.mergeDependencies(conflict, s.variables[conflict.cause.to].state)
	}
	c := conflict
	for {
		if len(c.terms) == 0 {
			return &unsolvable{c}
		}
		at, level := s.satisfier(c)
		e := s.assignments[at]
		if e.level > level {
			far := s.level-level > farJump
			s.backjump(level)
			if far {
				s.narrowed = len(s.assignments)
			}
			if c != conflict {
				s.addIncompatibility(c)
			}
			open, all := s.evaluate(c)
			if all || open < 0 {
				panic("solver: the root cause excludes nothing")
			}
			t := c.terms[open]
			s.assign(t.pkg, s.variables[t.pkg].state.without(t.set), c)
			return nil
		}
		c = resolve(c, e.cause, e.pkg, s.variables[e.pkg].all)
		for i := range c.terms {
			s.work += 4 * len(c.terms[i].set)
		}
		s.variables[e.pkg].conflicts++
		if s.work > s.budget {
			return errBudget
		}
	}
}

// satisfier returns the latest assignment that satisfies a term of an incompatibility whose
// terms are all satisfied, and the highest level of the assignments that satisfy the other
// terms.
func (s *search) satisfier(c *incompatibility) (at, level int) {
	at = -1
	for i := range c.terms {
		t := &c.terms[i]
		j := s.satisfierOf(t)
		if j > at {
			at, j = j, at
		}
		if j >= 0 {
			level = max(level, s.assignments[j].level)
		}
	}
	return at, level
}

// satisfierOf returns the assignment that first satisfies a term. States only become smaller
// along the partial solution.
func (s *search) satisfierOf(t *term) int {
	history := s.variables[t.pkg].history
	at := sort.Search(len(history)-1, func(k int) bool {
		s.work += len(t.set)
		return s.assignments[history[k]].now.subset(t.set)
	})
	return history[at]
}

// backjump removes all assignments above a level.
func (s *search) backjump(level int) {
	end := len(s.assignments)
	for end > 0 && s.assignments[end-1].level > level {
		e := &s.assignments[end-1]
		v := s.variables[e.pkg]
		v.deselected = v.deselected || e.cause == nil
		v.state, v.history = e.before, v.history[:len(v.history)-1]
		end--
	}
	undone := s.assignments[end:]
	s.assignments = s.assignments[:end]
	s.level = level
	for i := range undone {
		s.enqueueDecision(undone[i].pkg)
	}
	s.requeueUndone(level)
}

// requeueUndone schedules packages whose conclusions a backjump removed although their version
// is still selected.
func (s *search) requeueUndone(level int) {
	end := len(s.loaded)
	for end > 0 && s.loaded[end-1].level > level {
		end--
	}
	undone := s.loaded[end:]
	s.loaded = s.loaded[:end]
	for _, r := range undone {
		if s.variables[r.pkg].state.only() == r.candidate {
			s.enqueue(r.pkg)
			s.loaded = append(s.loaded, loadedVersion{r.pkg, r.candidate, level})
		}
	}
}
