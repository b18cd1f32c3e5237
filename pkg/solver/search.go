package solver

import (
	"errors"
	"math"
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// search looks for a solution of one problem with a fixed list of candidates for each
// package. If it finds that a list of candidates is incomplete, it records the missing
// candidate in the fact store and returns errRestart; the next search includes it.
type search struct {
	problem     *Problem
	roots       []dependency.Root // sorted
	store       *factStore
	variables   []*variable
	numbers     map[string]int
	assignments []assignment
	level       int
	undecided   queue
	changed     []int
	loaded      []loadedVersion
	narrowed    int // index of the first assignment after a far backjump that readNext has not seen
	work        int
	budget      int
	conflicts   int
	// optionalRequirements maps packages to the optional requirements on them. They become
	// incompatibilities when the package is first required.
	optionalRequirements map[string][]optionalRequirement
	// exhaustive adds the cached dependencies of all versions at once and merges them, which
	// makes explanations shorter.
	exhaustive bool
	// firstCycle is the first cycle that the search rejected.
	firstCycle []string
}

// assignment restricts the state of a package. The list of assignments is the partial
// solution.
type assignment struct {
	pkg         int
	before, now set
	level       int
	cause       *incompatibility // nil for a decision
}

// loadedVersion is a candidate whose dependencies were added as incompatibilities, and the
// decision level of the conclusions from them. If a backjump undoes these conclusions but
// not the candidate, they must be derived again.
type loadedVersion struct{ pkg, candidate, level int }

type mergeKey struct {
	to       int
	text     string
	optional bool
}

var (
	errRestart = errors.New("the list of candidates is incomplete")
	errBudget  = errors.New("the budget is exhausted")
)

// unsolvable carries the derivation of the incompatibility without terms.
type unsolvable struct{ proof *incompatibility }

func (*unsolvable) Error() string { return "there is no solution" }

func newSearch(p *Problem, store *factStore, exhaustive bool) *search {
	s := &search{
		problem: p, store: store, numbers: map[string]int{}, optionalRequirements: map[string][]optionalRequirement{},
		narrowed: math.MaxInt, budget: p.Budget, exhaustive: exhaustive,
	}
	if s.budget <= 0 {
		s.budget = DefaultBudget
	}
	s.roots = slices.Clone(p.Roots)
	slices.SortStableFunc(s.roots, sameOrder)
	return s
}

// run returns nil when every required package has a version and no dependencies form a
// cycle.
func (s *search) run() error {
	if err := s.addRoots(); err != nil {
		return err
	}
	if err := s.propagate(); err != nil {
		return err
	}
	if !s.exhaustive {
		if err := s.prefetch(); err != nil {
			return err
		}
	}
	for {
		if err := s.propagate(); err != nil {
			return err
		}
		if err := s.readNext(); err != nil {
			return err
		}
		pkg := s.nextDecision()
		if pkg < 0 {
			cycle := s.cycle()
			if cycle == nil {
				return nil
			}
			if err := s.excludeCycle(cycle); err != nil {
				return err
			}
			continue
		}
		if err := s.decide(pkg); err != nil {
			return err
		}
	}
}

// addRoots adds the problem itself as a required package with one version, which depends
// on the roots.
func (s *search) addRoots() error {
	problem := &variable{name: "", candidates: make([]candidate, 2), size: 2, all: fullSet(2)}
	problem.state, problem.read = problem.all, single(2, 1)
	s.variables = append(s.variables, problem)
	s.addIncompatibility(&incompatibility{terms: []term{{0, single(2, 0)}}, cause: cause{kind: required}})
	for i, r := range s.roots {
		text := r.Constraint
		if r.Exact {
			text = s.store.exactTag(text)
		}
		if r.Optional {
			if err := s.addOptionalRequirement(r.Package, optionalRequirement{
				pkg: 0, candidate: 1, text: text, root: i,
			}); err != nil {
				return err
			}
			continue
		}
		n, fit, err := s.requirement(r.Package, text)
		if err != nil {
			return err
		}
		s.addIncompatibility(s.dependencyIncompatibility(0, 1, n, fit, cause{kind: rootRequirement, root: i}))
	}
	s.enqueue(0)
	return nil
}

// requirement returns the index of a package in this search and the candidates that satisfy
// a constraint. Packages are numbered in the order in which the search finds them, roots
// first.
func (s *search) requirement(name, text string) (int, set, error) {
	c := s.store.constraint(text)
	n, ok := s.numbers[name]
	if !ok {
		var err error
		if n, err = s.addVariable(name, c); err != nil {
			return 0, nil, err
		}
	}
	v := s.variables[n]
	switch {
	case c.Pin() != nil && !v.knows(*c.Pin()):
		if s.store.pin(name, *c.Pin()) {
			return 0, nil, errRestart
		}
	case c.Pin() == nil && !v.listed:
		s.store.mustList[name] = true
		return 0, nil, errRestart
	}
	return n, v.fitting(text, c), nil
}

// addVariable adds a package to the search. It lists the versions of the package unless
// the only requirement on it is a pin.
func (s *search) addVariable(name string, c *version.Constraint) (int, error) {
	if c.Pin() == nil {
		s.store.mustList[name] = true
	}
	var listed *listing
	if s.store.mustList[name] {
		l, err := s.store.listing(name)
		if err != nil {
			return 0, err
		}
		listed = l
	}
	if c.Pin() != nil && (listed == nil || !named(listed.candidates, *c.Pin())) {
		s.store.pin(name, *c.Pin())
	}
	v := newVariable(name, listed, s.store.pins[name], s.problem.Installed[name])
	v.virtual = s.store.virtualFor(name)
	v.prefer(s.problem.Nearest)
	if p := s.problem.preferred; p != nil && p.pkg == name {
		v.preference, v.preferred = p.order(v), true
	}
	v.isRoot = slices.ContainsFunc(s.roots, func(r dependency.Root) bool { return r.Package == name && !r.Optional })
	n := len(s.variables)
	v.order = unordered + n
	s.numbers[name] = n
	s.variables = append(s.variables, v)
	s.restrictInstalled(n)
	for _, b := range s.optionalRequirements[name] {
		if err := s.applyOptionalRequirement(n, b); err != nil {
			return 0, err
		}
	}
	if s.exhaustive {
		if err := s.loadCachedDependencies(n); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// restrictInstalled forbids moves of an installed package that the problem does not
// allow, and candidates that are not preferred.
func (s *search) restrictInstalled(n int) {
	v := s.variables[n]
	if v.preferred {
		allowed := newSet(v.size)
		for _, i := range v.preference {
			allowed.add(i)
		}
		s.addIncompatibility(&incompatibility{
			terms: []term{{n, v.all.without(allowed).without(single(v.size, 0))}}, cause: cause{kind: installedPin},
		})
		return
	}
	if v.isRoot || v.installed == 0 || s.problem.Moves == Freely || slices.Contains(s.problem.movable, v.name) {
		return
	}
	forbidden := v.olderThanInstalled()
	if s.problem.Moves == Never {
		forbidden = v.all.without(single(v.size, 0)).without(single(v.size, v.installed))
	}
	if !forbidden.empty() {
		s.addIncompatibility(&incompatibility{terms: []term{{n, forbidden}}, cause: cause{kind: installedPin}})
	}
}

// nextDecision returns the package to decide next, or -1 if none is undecided.
func (s *search) nextDecision() int {
	for len(s.undecided) > 0 {
		pkg := s.undecided.pop().pkg
		v := s.variables[pkg]
		v.waiting = false
		if !v.state.absent() && !v.settled() {
			return pkg
		}
	}
	return -1
}

// decide selects the preferred version of a package, unless unit propagation over its
// dependencies excludes it.
func (s *search) decide(pkg int) error {
	v := s.variables[pkg]
	i := v.best(v.state, func() bool { return s.constrained(pkg) })
	if err := s.loadDependencies(pkg, i); err != nil {
		return err
	}
	s.enqueue(pkg)
	if v.state.only() == i {
		return nil
	}
	if err := s.propagate(); err != nil {
		return err
	}
	if v.state.absent() || !v.state.has(i) || v.settled() {
		s.enqueueDecision(pkg)
		return nil
	}
	s.level++
	s.assign(pkg, single(v.size, i), nil)
	return nil
}

// constrained reports whether a selected version has a constraint on the package. If so, the
// constraint allows the remaining prereleases.
func (s *search) constrained(pkg int) bool {
	for _, c := range s.variables[pkg].incompatibilities {
		text, by := "", 0
		switch c.cause.kind {
		case rootRequirement:
			if r := s.roots[c.cause.root]; !r.Optional {
				text = r.Constraint
			}
		case requiredDependency:
			text, by = c.cause.texts[0], c.cause.from
		}
		if t, ok := c.find(by); text != "" && by != pkg && ok && s.variables[by].state.subset(t.set) {
			return true
		}
	}
	return false
}

// enqueueDecision adds a package to the queue of undecided packages.
func (s *search) enqueueDecision(pkg int) {
	v := s.variables[pkg]
	if v.waiting || pkg == 0 || v.state.absent() || v.settled() {
		return
	}
	v.waiting = true
	s.undecided.push(ranked{s.rank(v), v.order, pkg})
}

// rank orders decisions: the preferred package, roots, installed packages, other packages.
// Within a rank, packages are decided before their dependencies, and otherwise in the order
// in which the search finds them.
func (s *search) rank(v *variable) int {
	switch {
	case v.preferred:
		return -1
	case v.isRoot:
		return 0
	case v.installed > 0:
		return 1
	}
	return 2
}
