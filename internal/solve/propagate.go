package solve

import "sort"

// propagate draws every conclusion from what changed: an incompatibility of which
// all terms but one hold excludes the last one.
func (s *search) propagate() error {
	for len(s.changed) > 0 {
		pkg := s.changed[len(s.changed)-1]
		s.changed = s.changed[:len(s.changed)-1]
		s.variables[pkg].queued = false
		facts := s.variables[pkg].facts
		for i := len(facts) - 1; i >= 0; i-- {
			open, all := s.look(facts[i])
			if !all && open < 0 {
				if open == never && s.level == 0 && s.past(facts[i]) {
					s.drop(pkg, i)
				}
				continue
			}
			fact := facts[i]
			if !all {
				fact = s.generalize(fact, open)
				t := fact.terms[open]
				if now := s.variables[t.pkg].state.without(t.set); !now.empty() {
					s.narrow(t.pkg, now, fact)
					continue
				}
			}
			if err := s.learnFrom(fact); err != nil {
				return err
			}
			s.touch(pkg) // facts that are new may hold at the lower level as well
			break
		}
		if s.work > s.budget {
			return errBudget
		}
	}
	return nil
}

// generalize widens a fact that excludes versions of the package that depends.
func (s *search) generalize(fact *incompatibility, open int) *incompatibility {
	if s.wide && fact.between() && fact.terms[open].pkg == fact.cause.from {
		return s.widen(fact, s.variables[fact.cause.to].state)
	}
	return fact
}

// past reports whether an incompatibility that cannot hold is of no use either to
// those who look for what is asked of a package, or for facts that are alike.
func (s *search) past(c *incompatibility) bool {
	if s.wide || !c.between() {
		return !s.wide && c.cause.kind == derived
	}
	from, _ := c.find(c.cause.from)
	return s.variables[c.cause.from].state.disjoint(from.set)
}

// drop stops watching an incompatibility of a package that can never matter again.
// Where a package has thousands of versions, most facts soon are about versions
// that are out.
func (s *search) drop(pkg, i int) {
	v := s.variables[pkg]
	last := len(v.facts) - 1
	v.facts[i] = v.facts[last]
	v.facts = v.facts[:last]
}

// What look says of incompatibilities from which nothing follows.
const (
	several = -1 // terms are open
	never   = -2 // a term cannot hold
)

// look reports whether all terms of an incompatibility hold, or else which one is
// the only one that is open, if there is one.
func (s *search) look(c *incompatibility) (open int, all bool) {
	open = several
	for i := range c.terms {
		t := &c.terms[i]
		state := s.variables[t.pkg].state
		s.work += len(state)
		if state.subset(t.set) {
			continue
		}
		if state.disjoint(t.set) {
			return never, false
		}
		if open >= 0 {
			return several, false
		}
		open = i
	}
	return open, open < 0
}

// narrow writes into the trail that the state of a package is within a set.
func (s *search) narrow(pkg int, now set, why *incompatibility) {
	v := s.variables[pkg]
	s.work += 4 * len(now)
	s.trail = append(s.trail, entry{pkg: pkg, before: v.state, now: now, level: s.level, cause: why})
	v.history = append(v.history, len(s.trail)-1)
	v.state = now
	s.wait(pkg)
	s.touch(pkg)
}

// touch makes propagate look at what is known of a package.
func (s *search) touch(pkg int) {
	if v := s.variables[pkg]; !v.queued {
		v.queued = true
		s.changed = append(s.changed, pkg)
	}
}

// learnFrom resolves a conflict to its cause, and goes back to where that would
// have excluded something.
func (s *search) learnFrom(conflict *incompatibility) error {
	s.conflicts++
	if s.wide && conflict.between() {
		conflict = s.widen(conflict, s.variables[conflict.cause.to].state)
	}
	c := conflict
	for {
		if len(c.terms) == 0 {
			return &unsolvable{c}
		}
		at, level := s.satisfier(c)
		e := s.trail[at]
		if e.level > level {
			s.back(level)
			if c != conflict {
				s.learn(c)
			}
			open, all := s.look(c)
			if all || open < 0 {
				panic("solve: what was learned excludes nothing")
			}
			t := c.terms[open]
			s.narrow(t.pkg, s.variables[t.pkg].state.without(t.set), c)
			return nil
		}
		c = resolve(c, e.cause, e.pkg, s.variables[e.pkg].all)
		for i := range c.terms {
			s.work += 4 * len(c.terms[i].set)
		}
		s.variables[e.pkg].clashes++
		if s.work > s.budget {
			return errBudget
		}
	}
}

// satisfier finds the newest entry of the trail that makes a term of an
// incompatibility hold, of which all terms hold, and the highest level at which
// the other terms came to hold.
func (s *search) satisfier(c *incompatibility) (at, level int) {
	at = -1
	for i := range c.terms {
		t := &c.terms[i]
		j := s.since(t)
		if j > at {
			at, j = j, at
		}
		if j >= 0 {
			level = max(level, s.trail[j].level)
		}
	}
	return at, level
}

// since is the entry of the trail that makes a term hold, which holds now. States
// only become narrower along the trail.
func (s *search) since(t *term) int {
	history := s.variables[t.pkg].history
	at := sort.Search(len(history)-1, func(k int) bool {
		s.work += len(t.set)
		return s.trail[history[k]].now.subset(t.set)
	})
	return history[at]
}

// back forgets everything above a level.
func (s *search) back(level int) {
	end := len(s.trail)
	for end > 0 && s.trail[end-1].level > level {
		e := &s.trail[end-1]
		v := s.variables[e.pkg]
		v.state, v.history = e.before, v.history[:len(v.history)-1]
		end--
	}
	undone := s.trail[end:]
	s.trail = s.trail[:end]
	s.level = level
	for i := range undone {
		s.wait(undone[i].pkg)
	}
	s.again(level)
}

// again makes propagate draw the conclusions anew that were undone although their
// reason holds at the level that is left.
func (s *search) again(level int) {
	end := len(s.fresh)
	for end > 0 && s.fresh[end-1].level > level {
		end--
	}
	undone := s.fresh[end:]
	s.fresh = s.fresh[:end]
	for _, r := range undone {
		if s.variables[r.pkg].state.only() == r.candidate {
			s.touch(r.pkg)
			s.fresh = append(s.fresh, reading{r.pkg, r.candidate, level})
		}
	}
}
