package solve

import "slices"

// read makes facts of the dependencies of one candidate.
func (s *search) read(pkg, i int) error {
	v := s.variables[pkg]
	if v.read.has(i) {
		return nil
	}
	n, err := s.memory.dependencies(v.name, v.candidates[i].pin)
	if err != nil {
		return err
	}
	s.fresh = append(s.fresh, reading{pkg, i, s.level})
	return s.add(pkg, i, n)
}

// readKnown makes facts of all candidates whose dependencies are known already.
func (s *search) readKnown(pkg int) error {
	v := s.variables[pkg]
	for i := 1; i < v.size; i++ {
		n := s.memory.known(v.name, v.candidates[i].pin)
		if n == nil {
			continue
		}
		if err := s.add(pkg, i, n); err != nil {
			return err
		}
	}
	return nil
}

func (s *search) add(pkg, i int, n *needs) error {
	v := s.variables[pkg]
	if v.read.has(i) {
		return nil
	}
	if n.gone != nil {
		v.read.add(i)
		s.merge(v, mergeKey{to: -1}, &incompatibility{
			terms: []term{{pkg, single(v.size, i)}}, cause: cause{kind: vanished, from: pkg},
		})
		return nil
	}
	for _, d := range n.deps {
		if d.Optional {
			if err := s.bind(d.Package, bound{pkg: pkg, candidate: i, text: d.Constraint}); err != nil {
				return err
			}
			continue
		}
		to, fit, err := s.need(d.Package, d.Constraint)
		if err != nil {
			return err
		}
		s.depend(pkg, i, to, d.Constraint, fit)
	}
	v.read.add(i)
	return nil
}

// depend adds that candidate i of a package needs another one.
func (s *search) depend(pkg, i, to int, text string, fit set) {
	v := s.variables[pkg]
	c := cause{kind: needed, from: pkg, to: to, texts: []string{text}}
	if pkg == to {
		if !fit.has(i) {
			s.merge(v, mergeKey{to: to, text: text}, &incompatibility{terms: []term{{pkg, single(v.size, i)}}, cause: c})
		}
		return
	}
	s.merge(v, mergeKey{to: to, text: text}, s.requirement(pkg, i, to, fit, c))
}

// requirement is the fact that candidate i of a package needs another package in a
// set. Where nothing is in the set, the candidate itself cannot be.
func (s *search) requirement(pkg, i, to int, fit set, c cause) *incompatibility {
	from := term{pkg, single(s.variables[pkg].size, i)}
	if fit.empty() {
		return &incompatibility{terms: []term{from}, cause: c}
	}
	return pair(from, term{to, s.variables[to].all.without(fit)}, c)
}

// merge adds a fact about a version of a package, together with the same fact
// about other versions.
func (s *search) merge(v *variable, key mergeKey, fact *incompatibility) {
	old := v.touching[key]
	if old == nil {
		v.touching[key] = fact
		s.learn(fact)
		return
	}
	merged := &incompatibility{terms: slices.Clone(fact.terms), cause: fact.cause}
	for i := range merged.terms {
		if merged.terms[i].pkg == fact.cause.from {
			merged.terms[i].set = merged.terms[i].set.or(old.terms[i].set)
		}
	}
	v.touching[key] = merged
	for _, t := range merged.terms {
		v := s.variables[t.pkg]
		if at := slices.Index(v.facts, old); at >= 0 {
			v.facts[at] = merged
		} else {
			v.facts = append(v.facts, merged)
		}
	}
}

// learn adds an incompatibility to those that are watched.
func (s *search) learn(c *incompatibility) {
	for _, t := range c.terms {
		s.work += len(t.set)
		v := s.variables[t.pkg]
		v.facts = append(v.facts, c)
	}
}

func pair(a, b term, c cause) *incompatibility {
	if b.pkg < a.pkg {
		a, b = b, a
	}
	return &incompatibility{terms: []term{a, b}, cause: c}
}

// widen takes a fact together with all facts of the same two packages that exclude
// as much: when the versions 1 to 9 of a package each need one version of another
// package, and none of these nine can be, then that is one reason and not nine.
func (s *search) widen(fact *incompatibility, state set) *incompatibility {
	c := fact.cause
	if !s.wide || !fact.between() || c.from == c.to {
		return fact
	}
	from, _ := fact.find(c.from)
	to, some := fact.find(c.to)
	texts := slices.Clone(c.texts)
	changed := false
	for _, other := range s.variables[c.from].facts {
		if other == fact || other.cause.kind != c.kind || other.cause.from != c.from || other.cause.to != c.to {
			continue
		}
		t, also := other.find(c.to)
		if some != also || some && !state.subset(t.set) {
			continue
		}
		f, _ := other.find(c.from)
		from.set = from.set.or(f.set)
		if some {
			to.set = to.set.and(t.set)
		}
		texts = append(texts, other.cause.texts...)
		changed = true
	}
	if !changed {
		return fact
	}
	slices.Sort(texts)
	c.texts = slices.Compact(texts)
	if !some {
		return &incompatibility{terms: []term{from}, cause: c}
	}
	return pair(from, to, c)
}
