package solve

import (
	"errors"
	"strings"
)

// A Conflict is a problem without a solution.
type Conflict struct {
	Explanation Explanation
}

// Error is the explanation as one sentence after the other, without the remedies.
func (c *Conflict) Error() string {
	return strings.Join(c.Explanation.Lines, "; ")
}

// An Explanation says why a problem has no solution, and what would help.
type Explanation struct {
	// Lines are the steps of the argument. Step n begins with its number where a
	// later one refers to it, as "(n)". They end without a full stop.
	Lines []string
	// Edits are changes of which each makes the problem solvable; they have been
	// tried. Those that ask least come first.
	Edits []Edit
}

// String is the whole narrative, for a terminal.
func (e Explanation) String() string {
	var b strings.Builder
	for _, line := range e.Lines {
		b.WriteString(line + ".\n")
	}
	if len(e.Edits) > 0 {
		b.WriteString("\nWhat would help:\n")
	}
	for _, edit := range e.Edits {
		b.WriteString("- " + edit.String() + "\n")
	}
	return b.String()
}

// conflict explains a proof that there is no solution. The search is made once
// more with everything that is known by now, which gives shorter reasons.
func (m *memory) conflict(p *Problem, s *search, proof *incompatibility) error {
	if wide, shorter := m.widely(p); shorter != nil {
		s, proof = wide, shorter
	}
	c := &Conflict{Explanation: Explanation{Lines: tell(s, proof), Edits: m.edits(p, s, proof)}}
	err := ErrUnsolvable.New(c, "no versions go together")
	switch edits := words(c.Explanation.Edits, Edit.String); len(edits) {
	case 0:
		return err.WithDo("Ask for other versions, or ask the authors of the packages that are named.")
	case 1:
		return err.WithDo("This would help: %s.", edits[0])
	default:
		return err.WithDo("One of these would help: %s.", strings.Join(edits, "; "))
	}
}

// widely searches again with all facts that are known.
func (m *memory) widely(p *Problem) (*search, *incompatibility) {
	for {
		s := newSearch(p, m, true)
		err := s.run()
		if errors.Is(err, errAgain) {
			continue
		}
		var none *unsolvable
		if errors.As(err, &none) {
			return s, none.proof
		}
		return nil, nil
	}
}
