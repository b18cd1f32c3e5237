package solver

import (
	"errors"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
)

// Conflict is the error of a problem without a solution.
type Conflict struct {
	Explanation Explanation
}

// Error returns the explanation in one line, without the suggestions.
func (c *Conflict) Error() string {
	var b strings.Builder
	for i, line := range c.Explanation.Lines {
		text := strings.TrimLeft(line, " ")
		switch {
		case i == 0:
		case strings.HasPrefix(line, deepIndent), strings.HasSuffix(c.Explanation.Lines[i-1], ":"):
			b.WriteString(" ")
		default:
			b.WriteString("; ")
		}
		b.WriteString(text)
	}
	return b.String()
}

// Explanation describes why a problem has no solution.
type Explanation struct {
	// Roots is a minimal set of roots in conflict, in the order of the problem: together
	// they have no solution, and without any one of them they have one.
	Roots []dependency.Root
	// Lines describe the conflict: a heading, and one requirement in each line. A line
	// that is longer than about 200 characters continues in indented lines.
	Lines []string
	// Further is the number of conflicts that are independent of this one: they have no
	// root in common.
	Further int
	// Suggestions lists changes that make the whole problem solvable, smallest first.
	// Each of them has been verified.
	Suggestions []Suggestion
}

// String returns the whole explanation for a terminal.
func (e Explanation) String() string {
	var b strings.Builder
	for _, line := range e.Lines {
		b.WriteString(line + "\n")
	}
	switch len(e.Suggestions) {
	case 0:
	case 1:
		b.WriteString("\nThis change resolves the conflict:\n")
	default:
		b.WriteString("\nAny of these changes resolves the conflict:\n")
	}
	for _, s := range e.Suggestions {
		for _, line := range wrap("- " + s.String()) {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

const (
	// explanationBudget limits the work for one explanation to less than a second.
	explanationBudget = 2 * DefaultBudget
	// attemptBudget limits the work for one attempt.
	attemptBudget = DefaultBudget / 10
	// maxConflicts limits how many independent conflicts are counted.
	maxConflicts = 10
)

// explainer explains why a problem has no solution. Its searches share one fact store.
type explainer struct {
	store   *factStore
	problem Problem
	budget  int // remaining
}

// conflict returns the error of a problem that has no solution.
func (m *factStore) conflict(p *Problem, s *search, proof *incompatibility) error {
	c := &Conflict{Explanation: m.explain(p, s, proof)}
	err := ErrUnsolvable.New(c, "version conflict")
	switch texts := textsOf(c.Explanation.Suggestions, Suggestion.String); len(texts) {
	case 0:
		return err.WithDo("Request other versions, or ask the authors of the packages in the message.")
	case 1:
		return err.WithDo("This change resolves the conflict: %s.", texts[0])
	default:
		return err.WithDo("Any of these changes resolves the conflict: %s.", strings.Join(texts, "; "))
	}
}

func (m *factStore) explain(p *Problem, s *search, proof *incompatibility) Explanation {
	x := &explainer{store: m, problem: *p, budget: explanationBudget}
	for _, r := range p.Roots {
		if !r.Optional {
			x.problem.movable = append(x.problem.movable, r.Package)
		}
	}
	conflicts := x.conflicts(rootsOfProof(s, proof))
	first := conflicts[0]
	if precise, shorter := x.exhaustive(first); shorter != nil {
		s, proof = precise, shorter
	}
	e := Explanation{Roots: first, Further: len(conflicts) - 1}
	e.Lines = newReporter(s, proof, p.Roots).lines(first)
	if e.Further > 0 {
		e.Lines = append(e.Lines, furtherText(conflicts[1:]))
	}
	e.Lines = wrapAll(e.Lines)
	e.Suggestions = x.suggestions(s, proof, conflicts)
	return e
}

// solve solves a changed problem with the remaining budget.
func (x *explainer) solve(store *factStore, p Problem) (*search, error) {
	if x.budget <= 0 {
		return nil, errBudget
	}
	p.Budget = min(x.budget, attemptBudget)
	s, err := store.solve(&p)
	x.budget -= s.work
	return s, err
}

// with returns the problem with the given roots.
func (x *explainer) with(roots []dependency.Root) Problem {
	p := x.problem
	p.Roots = roots
	return p
}

// conflicts returns disjoint minimal sets of roots that have no solution, given one set
// without a solution. Removing all of them makes the problem solvable, unless the budget
// is exhausted or there are too many.
func (x *explainer) conflicts(roots []dependency.Root) [][]dependency.Root {
	rest := x.problem.Roots
	var out [][]dependency.Root
	for {
		core := x.minimal(roots)
		out = append(out, core)
		rest = exclude(rest, core)
		if len(out) == maxConflicts {
			return out
		}
		s, err := x.solve(x.store, x.with(rest))
		var none *unsolvable
		if !errors.As(err, &none) {
			return out
		}
		roots = rootsOfProof(s, none.proof)
	}
}

// minimal returns a minimal subset of roots that has no solution, in the order of the
// problem. A single root is preferred.
func (x *explainer) minimal(roots []dependency.Root) []dependency.Root {
	core := slices.Clone(roots)
	for _, r := range core {
		if len(core) > 1 && !r.Optional && x.unsolvable([]dependency.Root{r}) != nil {
			core = []dependency.Root{r}
		}
	}
	for i := 0; i < len(core) && len(core) > 1; {
		without := slices.Delete(slices.Clone(core), i, i+1)
		smaller := x.unsolvable(without)
		if smaller == nil {
			i++
			continue
		}
		// Roots before i are necessary, so that they are in every smaller conflict.
		core = smaller
	}
	slices.SortStableFunc(core, func(a, b dependency.Root) int {
		return slices.Index(x.problem.Roots, a) - slices.Index(x.problem.Roots, b)
	})
	return core
}

// unsolvable returns the subset of roots that proves that they have no solution, sorted,
// or nil if they have one or the search exceeds the budget.
func (x *explainer) unsolvable(roots []dependency.Root) []dependency.Root {
	s, err := x.solve(x.store, x.with(roots))
	var none *unsolvable
	if !errors.As(err, &none) {
		return nil
	}
	return rootsOfProof(s, none.proof)
}

// exhaustive repeats the search with all cached facts, which results in shorter proofs.
// It returns nil if that search finds no proof.
func (x *explainer) exhaustive(roots []dependency.Root) (*search, *incompatibility) {
	p := x.with(roots)
	p.Budget = min(x.budget, attemptBudget)
	for {
		s := newSearch(&p, x.store, true)
		err := s.run()
		x.budget -= s.work
		if errors.Is(err, errRestart) {
			continue
		}
		var none *unsolvable
		if errors.As(err, &none) {
			return s, none.proof
		}
		return nil, nil
	}
}

// proofFacts returns the incompatibilities on which a derivation rests, each once, in the
// order of the derivation.
func proofFacts(proof *incompatibility) []*incompatibility {
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

// rootsOfProof returns the roots on which a derivation rests, sorted.
func rootsOfProof(s *search, proof *incompatibility) []dependency.Root {
	var out []dependency.Root
	for _, c := range proofFacts(proof) {
		if c.cause.kind == rootRequirement {
			out = append(out, s.roots[c.cause.root])
		}
	}
	slices.SortFunc(out, sameOrder)
	return slices.Compact(out)
}

// hasCycle reports whether a derivation rests on an excluded cycle.
func hasCycle(proof *incompatibility) bool {
	return slices.ContainsFunc(proofFacts(proof), func(c *incompatibility) bool { return c.cause.kind == circular })
}

// exclude returns the roots without the given ones.
func exclude(roots, others []dependency.Root) []dependency.Root {
	return slices.DeleteFunc(slices.Clone(roots), func(r dependency.Root) bool { return slices.Contains(others, r) })
}
