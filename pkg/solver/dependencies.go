package solver

import "slices"

// loadDependencies adds the incompatibilities for the dependencies of one candidate.
func (s *search) loadDependencies(pkg, i int) error {
	v := s.variables[pkg]
	if v.read.has(i) {
		return nil
	}
	n, err := s.store.dependencies(v.name, v.candidates[i].pin())
	if err != nil {
		return err
	}
	s.loaded = append(s.loaded, loadedVersion{pkg, i, s.level})
	return s.addVersionFacts(pkg, i, n)
}

// loadCachedDependencies adds the incompatibilities for all candidates whose dependencies are
// cached.
func (s *search) loadCachedDependencies(pkg int) error {
	v := s.variables[pkg]
	for i := 1; i < v.size; i++ {
		n := s.store.cachedDependencies(v.name, v.candidates[i].pin())
		if n == nil {
			continue
		}
		if err := s.addVersionFacts(pkg, i, n); err != nil {
			return err
		}
	}
	return nil
}

func (s *search) addVersionFacts(pkg, i int, n *versionFacts) error {
	v := s.variables[pkg]
	if v.read.has(i) {
		return nil
	}
	if n.unavailable != nil {
		v.read.add(i)
		s.merge(v, mergeKey{to: -1}, &incompatibility{
			terms: []term{{pkg, single(v.size, i)}}, cause: cause{kind: unavailableVersion, from: pkg},
		})
		return nil
	}
	for _, d := range n.deps {
		if d.Optional {
			if err := s.addOptionalRequirement(d.Package, optionalRequirement{
				pkg: pkg, candidate: i, text: d.Constraint,
			}); err != nil {
				return err
			}
			continue
		}
		to, fit, err := s.requirement(d.Package, d.Constraint)
		if err != nil {
			return err
		}
		s.addDependency(pkg, i, to, d.Constraint, fit)
	}
	v.read.add(i)
	return nil
}

// addDependency adds the incompatibility for a dependency of candidate i of a package.
func (s *search) addDependency(pkg, i, to int, text string, fit set) {
	v := s.variables[pkg]
	c := cause{kind: requiredDependency, from: pkg, to: to, texts: []string{text}}
	if pkg == to {
		if !fit.has(i) {
			s.merge(v, mergeKey{to: to, text: text}, &incompatibility{terms: []term{{pkg, single(v.size, i)}}, cause: c})
		}
		return
	}
	s.merge(v, mergeKey{to: to, text: text}, s.dependencyIncompatibility(pkg, i, to, fit, c))
}

// dependencyIncompatibility returns the incompatibility of candidate i of a package with the
// versions of another package outside a set. If the set is empty, the candidate itself is
// excluded.
func (s *search) dependencyIncompatibility(pkg, i, to int, fit set, c cause) *incompatibility {
	from := term{pkg, single(s.variables[pkg].size, i)}
	if fit.empty() {
		return &incompatibility{terms: []term{from}, cause: c}
	}
	return pair(from, term{to, s.variables[to].all.without(fit)}, c)
}

// merge adds an incompatibility about a version of a package. It merges it with the same one
// about other versions.
func (s *search) merge(v *variable, key mergeKey, fact *incompatibility) {
	old := v.merged[key]
	if old == nil {
		v.merged[key] = fact
		s.addIncompatibility(fact)
		return
	}
	merged := &incompatibility{terms: slices.Clone(fact.terms), cause: fact.cause}
	for i := range merged.terms {
		if merged.terms[i].pkg == fact.cause.from {
			merged.terms[i].set = merged.terms[i].set.or(old.terms[i].set)
		}
	}
	v.merged[key] = merged
	for _, t := range merged.terms {
		v := s.variables[t.pkg]
		if at := slices.Index(v.incompatibilities, old); at >= 0 {
			v.incompatibilities[at] = merged
		} else {
			v.incompatibilities = append(v.incompatibilities, merged)
		}
	}
}

// addIncompatibility adds an incompatibility to the ones that unit propagation
// evaluates.
func (s *search) addIncompatibility(c *incompatibility) {
	for _, t := range c.terms {
		s.work += len(t.set)
		v := s.variables[t.pkg]
		v.incompatibilities = append(v.incompatibilities, c)
	}
}

func pair(a, b term, c cause) *incompatibility {
	if b.pkg < a.pkg {
		a, b = b, a
	}
	return &incompatibility{terms: []term{a, b}, cause: c}
}

// mergeDependencies merges an incompatibility with similar ones of the same two packages: if
// each of the versions 1 to 9 requires an excluded version of another package, the explanation
// states one reason, not nine.
func (s *search) mergeDependencies(fact *incompatibility, state set) *incompatibility {
	c := fact.cause
	if !s.exhaustive || !fact.isDependency() || c.from == c.to {
		return fact
	}
	from, _ := fact.find(c.from)
	to, some := fact.find(c.to)
	texts := slices.Clone(c.texts)
	changed := false
	for _, other := range s.variables[c.from].incompatibilities {
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
