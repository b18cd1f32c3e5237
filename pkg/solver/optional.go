package solver

// optionalRequirement is an optional dependency of a version, or an optional root.
type optionalRequirement struct {
	// The candidate that has the requirement; the problem itself for a root.
	pkg, candidate int // the dependent; the problem itself for a root
	text           string
	root           int // index in the roots, for a root
}

// addOptionalRequirement adds an optional requirement on a package. It has no effect, and the
// package is not listed, until the package is required.
func (s *search) addOptionalRequirement(name string, b optionalRequirement) error {
	s.optionalRequirements[name] = append(s.optionalRequirements[name], b)
	if to, ok := s.numbers[name]; ok {
		return s.applyOptionalRequirement(to, b)
	}
	return nil
}

// applyOptionalRequirement adds the incompatibility of a candidate with the versions that its
// optional requirement does not accept.
func (s *search) applyOptionalRequirement(to int, b optionalRequirement) error {
	v := s.variables[to]
	c := s.store.constraint(b.text)
	if c.Pin() != nil && !v.knows(*c.Pin()) && s.store.pin(v.name, *c.Pin()) {
		return errRestart
	}
	excluded := v.all.without(v.fitting(b.text, c)).without(single(v.size, 0))
	fact := &incompatibility{terms: []term{{b.pkg, single(s.variables[b.pkg].size, b.candidate)}}, cause: b.cause(to)}
	switch {
	case b.pkg == to && !excluded.has(b.candidate), excluded.empty():
		return nil
	case b.pkg != to:
		fact = pair(fact.terms[0], term{to, excluded}, fact.cause)
	}
	if b.pkg == 0 {
		s.addIncompatibility(fact)
	} else {
		s.merge(s.variables[b.pkg], mergeKey{to, b.text, true}, fact)
	}
	// Conclusions are valid while the candidate is selected.
	s.loaded = append(s.loaded, loadedVersion{b.pkg, b.candidate, s.level})
	s.enqueue(to)
	return nil
}

func (b optionalRequirement) cause(to int) cause {
	if b.pkg == 0 {
		return cause{kind: rootRequirement, root: b.root}
	}
	return cause{kind: optionalDependency, from: b.pkg, to: to, texts: []string{b.text}}
}
