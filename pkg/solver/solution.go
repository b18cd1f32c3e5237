package solver

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
)

// Solution is one version for each required package.
type Solution struct {
	// Picks are ordered by package.
	Picks []Pick
	// Steps is the work of the search, in the unit of Problem.Budget.
	Steps int
}

// Pick is the selected version of a package.
type Pick struct {
	Package string
	// Tag and Digest identify the version. One of them can be empty.
	Tag, Digest string
	// Dependencies are the dependencies of the version, ordered by package.
	Dependencies []dependency.Dependency
	// Why lists the requirements on the package, including optional ones, with their
	// constraints.
	Why []string
	// SetAside iterates over the tags that are newer than the version, newest first, and then over those that are not
	// versions, with the reason why each was not selected. The reasons are determined during the iteration, so the
	// candidates of all packages stay in memory as long as SetAside is referenced. The iterators of one solution must not
	// be used concurrently.
	SetAside iter.Seq[SetAside]
}

// Version returns the tag, or the digest if there is no tag.
func (p Pick) Version() string { return cmp.Or(p.Tag, p.Digest) }

// SetAside is a tag that was not selected, and the reason.
type SetAside struct{ Tag, Reason string }

// Solve finds a solution. It fails with ErrUnsolvable and a *Conflict, ErrCycle and a *Cycle,
// ErrBudget and an *Exhausted, or an error of the source with the name of the package.
func Solve(p Problem) (Solution, error) {
	store := newFactStore(p.Source)
	s, err := store.solve(&p)
	var none *unsolvable
	switch {
	case errors.As(err, &none) && hasCycle(none.proof):
		return Solution{}, ErrCycle.New(&Cycle{Path: s.firstCycle}, "dependency cycle")
	case errors.As(err, &none) && p.SkipExplanation:
		return Solution{}, ErrUnsolvable.New(nil, "version conflict")
	case errors.As(err, &none):
		return Solution{}, store.conflict(&p, s, none.proof)
	case errors.Is(err, errBudget):
		return Solution{}, exhausted(s)
	case err != nil:
		return Solution{}, err
	}
	return s.solution(), nil
}

// solve repeats the search until no candidates are missing.
func (m *factStore) solve(p *Problem) (*search, error) {
	for {
		s := newSearch(p, m, false)
		err := s.run()
		if !errors.Is(err, errRestart) {
			return s, err
		}
	}
}

// report describes the solution of a search.
type report struct {
	*search
	requirements map[int][]namedRequirement
}

// namedRequirement is a constraint with its matching candidates and its description.
type namedRequirement struct {
	text, words string
	fit         set
}

// solution returns the selected versions with their reasons.
func (s *search) solution() Solution {
	a := &report{search: s, requirements: map[int][]namedRequirement{}}
	for _, r := range s.roots {
		text := r.Constraint
		if r.Exact {
			text = s.store.exactTag(text)
		}
		words := " requested " + accepted(r.Constraint)
		if r.Optional {
			words = " " + worksOnlyWith + s.requirementText(r.Package, r.Constraint)
		}
		a.addRequirement(r.Package, text, r.Requester()+words)
	}
	for n := 1; n < len(s.variables); n++ {
		for _, d := range s.selectedDependencies(n) {
			words := " needs " + accepted(d.Constraint)
			if d.Optional {
				words = " " + worksOnlyWith + s.requirementText(d.Package, d.Constraint)
			}
			a.addRequirement(d.Package, d.Constraint, s.selectedName(n)+words)
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

// addRequirement records a requirement on a selected package.
func (a *report) addRequirement(pkg, text, words string) {
	n, ok := a.numbers[pkg]
	if !ok || a.variables[n].state.only() <= 0 {
		return
	}
	fit := a.variables[n].fitting(text, a.store.constraint(text))
	a.requirements[n] = append(a.requirements[n], namedRequirement{text, words, fit})
}

func (a *report) pick(n int) Pick {
	v := a.variables[n]
	c := v.candidates[v.state.only()]
	slices.SortFunc(a.requirements[n], func(a, b namedRequirement) int { return cmp.Compare(a.words, b.words) })
	p := Pick{
		Package: v.name, Tag: c.version.Tag, Digest: c.digest, Dependencies: slices.Clone(a.selectedDependencies(n)),
		SetAside: func(yield func(SetAside) bool) { a.setAside(n, yield) },
	}
	for _, by := range a.requirements[n] {
		p.Why = append(p.Why, by.words)
	}
	p.Why = slices.Compact(p.Why)
	return p
}

// selectedDependencies returns the dependencies of the selected version of a package.
func (s *search) selectedDependencies(n int) []dependency.Dependency {
	v := s.variables[n]
	i := v.state.only()
	if i <= 0 {
		return nil
	}
	if known := s.store.cachedDependencies(v.name, v.candidates[i].pin()); known != nil {
		return known.deps
	}
	return nil
}

// selectedName returns a package with its selected version.
func (s *search) selectedName(n int) string {
	v := s.variables[n]
	return v.name + " " + v.versionName(v.state.only())
}

func accepted(constraint string) string {
	if constraint == "" {
		return "any version"
	}
	return constraint
}

// name returns the version for messages: the tag, or the start of the digest.
func (c candidate) name() string {
	if c.version.Tag != "" {
		return c.version.Tag
	}
	return c.digest[:min(len(c.digest), len("sha256:")+12)]
}

// versionName returns the name of a version of the package for messages.
func (v *variable) versionName(i int) string {
	if v.virtual != nil {
		name, _ := v.virtual.VersionName(v.name, v.candidates[i].version.Tag)
		return name
	}
	return v.candidates[i].name()
}

// Exhausted is the cause of the error for a search that exceeds its budget.
type Exhausted struct {
	// Steps is the completed work.
	Steps int
	// Packages are the packages with the most conflicts, most frequent first, at most five.
	Packages []string
}

// Error returns the work and the packages.
func (e *Exhausted) Error() string {
	if len(e.Packages) == 0 {
		return fmt.Sprintf("the search was stopped after %d steps", e.Steps)
	}
	return fmt.Sprintf(
		"the search was stopped after %d steps; most conflicts concern %s", e.Steps, joinList(e.Packages, "and"),
	)
}

func exhausted(s *search) error {
	var busy []*variable
	for _, v := range s.variables[1:] {
		if v.conflicts > 0 {
			busy = append(busy, v)
		}
	}
	slices.SortStableFunc(busy, func(a, b *variable) int {
		return cmp.Or(-cmp.Compare(a.conflicts, b.conflicts), cmp.Compare(a.name, b.name))
	})
	e := &Exhausted{Steps: s.work}
	for _, v := range busy[:min(5, len(busy))] {
		e.Packages = append(e.Packages, v.name)
	}
	err := ErrBudget.New(e, "the search for versions exceeded its limit")
	if len(e.Packages) > 0 {
		return err.WithDo("Request an exact version of %s, or raise the limit.", joinList(e.Packages, "or"))
	}
	return err
}
