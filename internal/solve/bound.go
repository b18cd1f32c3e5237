package solve

// A bound is what is said about a package that need not be there, by a version of
// another one or by a root.
type bound struct {
	pkg, candidate int // who says it; the problem itself, for a root
	text           string
	root           int // index in the roots, for a root
}

// bind makes a fact of a bound on a package. As long as nobody is found to need that
// package there is nothing to say, and it is not looked up.
func (s *search) bind(name string, b bound) error {
	s.bounds[name] = append(s.bounds[name], b)
	if to, ok := s.numbers[name]; ok {
		return s.bound(to, b)
	}
	return nil
}

// bound adds that whoever has said it does not go with the other versions of a
// package.
func (s *search) bound(to int, b bound) error {
	v := s.variables[to]
	c := s.memory.constraint(b.text)
	if c.pin != nil && !v.knows(*c.pin) && s.memory.pin(v.name, *c.pin) {
		return errAgain
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
		s.learn(fact)
	} else {
		s.merge(s.variables[b.pkg], mergeKey{to, b.text, true}, fact)
	}
	// What follows holds as long as the one who says it is chosen.
	s.fresh = append(s.fresh, reading{b.pkg, b.candidate, s.level})
	s.touch(to)
	return nil
}

func (b bound) cause(to int) cause {
	if b.pkg == 0 {
		return cause{kind: asked, root: b.root}
	}
	return cause{kind: suited, from: b.pkg, to: to, texts: []string{b.text}}
}
