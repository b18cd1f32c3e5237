package solve

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// A Solution is one version for each package that is needed.
type Solution struct {
	// Picks are in the order of their packages.
	Picks []Pick
	// Steps is the work that it took, in the unit of Problem.Budget.
	Steps int
}

// A Pick is the version of a package.
type Pick struct {
	Package string
	// Tag and Digest name the version; one of them may be unknown.
	Tag, Digest string
	// Dependencies are those of this version, in the order of their packages.
	Dependencies []Dependency
	// Why says who asked, or works with some versions only, each with the constraint.
	Why []string
	// SetAside lists tags that are newer than the version, or that are no
	// versions, and says why each was not taken.
	SetAside []SetAside
}

// Version names the version: its tag, or its digest where it has none.
func (p Pick) Version() string { return cmp.Or(p.Tag, p.Digest) }

// SetAside is a tag that was not chosen.
type SetAside struct{ Tag, Reason string }

// Solve finds a solution. The error is ErrUnsolvable with a *Conflict, ErrBudget
// with an *Exhausted, ErrCycle with a *Cycle, or an error of the source with the
// name of the package.
func Solve(p Problem) (Solution, error) {
	m := newMemory(p.Source)
	s, err := m.solve(&p)
	var none *unsolvable
	switch {
	case errors.As(err, &none) && p.Unexplained:
		return Solution{}, ErrUnsolvable.New(nil, "no versions go together")
	case errors.As(err, &none):
		return Solution{}, m.conflict(&p, s, none.proof)
	case errors.Is(err, errBudget):
		return Solution{}, exhausted(s)
	case err != nil:
		return Solution{}, err
	}
	if path := s.cycle(); path != nil {
		return Solution{}, ErrCycle.New(&Cycle{Path: path}, "dependencies go in a circle")
	}
	return s.solution(), nil
}

// solve searches until everything that a search needs to know is known.
func (m *memory) solve(p *Problem) (*search, error) {
	for {
		s := newSearch(p, m, false)
		err := s.run()
		if !errors.Is(err, errAgain) {
			return s, err
		}
	}
}

// An answer is a search that has found a solution, with who asks for what in it.
type answer struct {
	*search
	asks map[int][]ask
}

// An ask is a constraint with what fits it, and the words that say whose it is.
type ask struct {
	text, words string
	fit         set
}

func (s *search) solution() Solution {
	a := &answer{search: s, asks: map[int][]ask{}}
	for _, r := range s.roots {
		text := r.Constraint
		if r.Exact {
			text = s.memory.exactly(text)
		}
		words := " asked for " + accepted(r.Constraint)
		if r.Optional {
			words = " " + suits + s.wish(r.Package, r.Constraint)
		}
		a.ask(r.Package, text, r.asker()+words)
	}
	for n := 1; n < len(s.variables); n++ {
		for _, d := range s.chosenNeeds(n) {
			words := " needs " + accepted(d.Constraint)
			if d.Optional {
				words = " " + suits + s.wish(d.Package, d.Constraint)
			}
			a.ask(d.Package, d.Constraint, s.chosenName(n)+words)
		}
	}
	out := Solution{Steps: s.work}
	for n := 1; n < len(s.variables); n++ {
		if s.variables[n].state.only() > 0 {
			out.Picks = append(out.Picks, a.pick(n))
		}
	}
	slices.SortFunc(out.Picks, func(a, b Pick) int { return cmp.Compare(a.Package, b.Package) })
	return out
}

// suits is said of a package that need not be there.
const suits = "works only with "

// ask notes who accepts which versions of a package, if that is chosen.
func (a *answer) ask(pkg, text, words string) {
	n, ok := a.numbers[pkg]
	if !ok || a.variables[n].state.only() <= 0 {
		return
	}
	fit := a.variables[n].fitting(text, a.memory.constraint(text))
	a.asks[n] = append(a.asks[n], ask{text, words, fit})
}

func (a *answer) pick(n int) Pick {
	v := a.variables[n]
	c := v.candidates[v.state.only()]
	slices.SortFunc(a.asks[n], func(a, b ask) int { return cmp.Compare(a.words, b.words) })
	p := Pick{Package: v.name, Tag: c.tag, Digest: c.digest, Dependencies: slices.Clone(a.chosenNeeds(n)), SetAside: a.setAside(n)}
	for _, by := range a.asks[n] {
		p.Why = append(p.Why, by.words)
	}
	p.Why = slices.Compact(p.Why)
	return p
}

// chosenNeeds are the dependencies of the version that was chosen of a package.
func (s *search) chosenNeeds(n int) []Dependency {
	v := s.variables[n]
	i := v.state.only()
	if i <= 0 {
		return nil
	}
	if known := s.memory.known(v.name, v.candidates[i].pin); known != nil {
		return known.deps
	}
	return nil
}

// chosenName is a package with the version that was chosen.
func (s *search) chosenName(n int) string {
	v := s.variables[n]
	return v.name + " " + v.candidates[v.state.only()].name()
}

func (r Root) asker() string { return cmp.Or(r.Name, "you") }

func accepted(constraint string) string {
	if constraint == "" {
		return "any version"
	}
	return constraint
}

// name is how people call a candidate: by its tag, or by the beginning of its
// digest.
func (c candidate) name() string {
	if c.tag != "" {
		return c.tag
	}
	return c.digest[:min(len(c.digest), len("sha256:")+12)]
}

// Exhausted is a search that came to no end.
type Exhausted struct {
	// Steps is the work that was done.
	Steps int
	// Packages are those that were most often part of a contradiction, the most
	// frequent first, at most five.
	Packages []string
}

// Error names the packages.
func (e *Exhausted) Error() string {
	if len(e.Packages) == 0 {
		return fmt.Sprintf("there was no end after %d steps", e.Steps)
	}
	return fmt.Sprintf("there was no end after %d steps; what contradicts itself most often are the constraints on %s", e.Steps, list(e.Packages, "and"))
}

func exhausted(s *search) error {
	var busy []*variable
	for _, v := range s.variables[1:] {
		if v.clashes > 0 {
			busy = append(busy, v)
		}
	}
	slices.SortStableFunc(busy, func(a, b *variable) int {
		return cmp.Or(-cmp.Compare(a.clashes, b.clashes), cmp.Compare(a.name, b.name))
	})
	e := &Exhausted{Steps: s.work}
	for _, v := range busy[:min(5, len(busy))] {
		e.Packages = append(e.Packages, v.name)
	}
	err := ErrBudget.New(e, "no versions were found that go together, and the search was ended")
	if len(e.Packages) > 0 {
		return err.WithDo("Ask for an exact version of %s, or allow more steps.", list(e.Packages, "or"))
	}
	return err
}
