package solve

import (
	"container/heap"
	"errors"
	"slices"
)

// A search looks for a solution of one problem with a fixed list of candidates
// for each package. When it learns of a candidate that it did not know, or that a
// list is needed after all, it ends with errAgain, and the next search knows.
type search struct {
	problem   *Problem
	roots     []Root // sorted
	memory    *memory
	variables []*variable
	numbers   map[string]int
	trail     []entry
	level     int
	open      queue
	changed   []int
	fresh     []reading
	work      int
	budget    int
	conflicts int
	// bounds are conditions on packages, by their names. Those of a package that nobody
	// has been found to need so far become facts when somebody is.
	bounds map[string][]bound
	// wide adds what is known of all versions at once, and takes facts together,
	// so that explanations become short.
	wide bool
}

// An entry of the trail narrows the state of a package.
type entry struct {
	pkg         int
	before, now set
	level       int
	cause       *incompatibility // nil for a decision
}

// A reading is a candidate whose dependencies became facts, and the level at which
// conclusions from them were drawn. When that is undone while the candidate stays,
// they must be drawn again.
type reading struct{ pkg, candidate, level int }

type mergeKey struct {
	to       int
	text     string
	optional bool
}

var (
	errAgain  = errors.New("more candidates are known now")
	errBudget = errors.New("the budget is spent")
)

// unsolvable carries the incompatibility without terms: nothing can hold.
type unsolvable struct{ proof *incompatibility }

func (*unsolvable) Error() string { return "there is no solution" }

func newSearch(p *Problem, m *memory, wide bool) *search {
	s := &search{problem: p, memory: m, numbers: map[string]int{}, bounds: map[string][]bound{}, budget: p.Budget, wide: wide}
	if s.budget <= 0 {
		s.budget = DefaultBudget
	}
	s.roots = slices.Clone(p.Roots)
	slices.SortStableFunc(s.roots, sameOrder)
	return s
}

// run ends with nil when every package that is needed has a version.
func (s *search) run() error {
	if err := s.begin(); err != nil {
		return err
	}
	if err := s.propagate(); err != nil {
		return err
	}
	if !s.wide {
		if err := s.scout(); err != nil {
			return err
		}
	}
	for {
		if err := s.propagate(); err != nil {
			return err
		}
		pkg := s.next()
		if pkg < 0 {
			return nil
		}
		if err := s.choose(pkg); err != nil {
			return err
		}
	}
}

// begin makes the problem itself a package of one version that depends on what the
// roots ask for, and that must be there.
func (s *search) begin() error {
	problem := &variable{name: "", candidates: make([]candidate, 2), size: 2, all: fullSet(2)}
	problem.state, problem.read = problem.all, single(2, 1)
	s.variables = append(s.variables, problem)
	s.learn(&incompatibility{terms: []term{{0, single(2, 0)}}, cause: cause{kind: required}})
	for i, r := range s.roots {
		text := r.Constraint
		if r.Exact {
			text = s.memory.exactly(text)
		}
		if r.Optional {
			if err := s.bind(r.Package, bound{pkg: 0, candidate: 1, text: text, root: i}); err != nil {
				return err
			}
			continue
		}
		n, fit, err := s.need(r.Package, text)
		if err != nil {
			return err
		}
		s.learn(s.requirement(0, 1, n, fit, cause{kind: asked, root: i}))
	}
	s.touch(0)
	return nil
}

// need is the number of a package in this search and what satisfies a constraint
// among its candidates. Packages are numbered as they are met, roots first.
func (s *search) need(name, text string) (int, set, error) {
	c := s.memory.constraint(text)
	n, ok := s.numbers[name]
	if !ok {
		var err error
		if n, err = s.meet(name, c); err != nil {
			return 0, nil, err
		}
	}
	v := s.variables[n]
	switch {
	case c.pin != nil && !v.knows(*c.pin):
		if s.memory.pin(name, *c.pin) {
			return 0, nil, errAgain
		}
	case c.pin == nil && !v.listed:
		s.memory.asked[name] = true
		return 0, nil, errAgain
	}
	return n, v.fitting(text, c), nil
}

// meet makes a variable of a package that was not met before. Versions are listed
// unless all that is said of the package is a pin.
func (s *search) meet(name string, c *constraint) (int, error) {
	if c.pin == nil {
		s.memory.asked[name] = true
	}
	var listed *listing
	if s.memory.asked[name] {
		l, err := s.memory.listing(name)
		if err != nil {
			return 0, err
		}
		listed = l
	}
	if c.pin != nil && (listed == nil || !slices.ContainsFunc(listed.pins, c.pin.names)) {
		s.memory.pin(name, *c.pin)
	}
	v := newVariable(name, listed, s.memory.pins[name], s.problem.Installed[name])
	v.prefer(s.problem.Nearest)
	v.named = slices.ContainsFunc(s.roots, func(r Root) bool { return r.Package == name && !r.Optional })
	n := len(s.variables)
	v.place = unplaced + n
	s.numbers[name] = n
	s.variables = append(s.variables, v)
	s.hold(n)
	for _, b := range s.bounds[name] {
		if err := s.bound(n, b); err != nil {
			return 0, err
		}
	}
	if s.wide {
		if err := s.readKnown(n); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// hold forbids moves of what is installed.
func (s *search) hold(n int) {
	v := s.variables[n]
	if v.named || v.installed == 0 || s.problem.Moves == Freely {
		return
	}
	forbidden := v.below()
	if s.problem.Moves == Never {
		forbidden = v.all.without(single(v.size, 0)).without(single(v.size, v.installed))
	}
	if !forbidden.empty() {
		s.learn(&incompatibility{terms: []term{{n, forbidden}}, cause: cause{kind: held}})
	}
}

// next is the package to decide about, or -1 when nothing is open.
func (s *search) next() int {
	for s.open.Len() > 0 {
		pkg := heap.Pop(&s.open).(ranked).pkg
		v := s.variables[pkg]
		v.waiting = false
		if !v.state.absent() && !v.settled() {
			return pkg
		}
	}
	return -1
}

// choose takes the version of a package that is preferred, unless its dependencies
// exclude it at once.
func (s *search) choose(pkg int) error {
	v := s.variables[pkg]
	i := v.best(v.state, func() bool { return s.constrained(pkg) })
	if err := s.read(pkg, i); err != nil {
		return err
	}
	s.touch(pkg)
	if v.state.only() == i {
		return nil
	}
	if err := s.propagate(); err != nil {
		return err
	}
	if v.state.absent() || !v.state.has(i) || v.settled() {
		s.wait(pkg)
		return nil
	}
	s.level++
	s.narrow(pkg, single(v.size, i), nil)
	return nil
}

// constrained reports whether somebody who has been chosen asks for the package
// with a constraint. If so, prereleases that are left are those that the
// constraint names.
func (s *search) constrained(pkg int) bool {
	for _, c := range s.variables[pkg].facts {
		text, by := "", 0
		switch c.cause.kind {
		case asked:
			if r := s.roots[c.cause.root]; !r.Optional {
				text = r.Constraint
			}
		case needed:
			text, by = c.cause.texts[0], c.cause.from
		}
		if t, ok := c.find(by); text != "" && by != pkg && ok && s.variables[by].state.subset(t.set) {
			return true
		}
	}
	return false
}

// wait puts a package into the queue of those that are open.
func (s *search) wait(pkg int) {
	v := s.variables[pkg]
	if v.waiting || pkg == 0 || v.state.absent() || v.settled() {
		return
	}
	v.waiting = true
	heap.Push(&s.open, ranked{s.rank(v), v.place, pkg})
}

// rank orders decisions: what roots name, so that they get their best version,
// then what is installed, so that others fit themselves to it, then the rest.
// Within a rank, packages are decided before what they need, and those of which
// that is not known in the order in which they were met.
func (s *search) rank(v *variable) int {
	switch {
	case v.named:
		return 0
	case v.installed > 0:
		return 1
	}
	return 2
}

type ranked struct{ rank, place, pkg int }

// unplaced comes after every place that is known.
const unplaced = 1 << 40

// queue is a heap of packages.
type queue []ranked

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].rank < q[j].rank || q[i].rank == q[j].rank && q[i].place < q[j].place
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(ranked)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
