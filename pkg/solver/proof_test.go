package solver

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/Masterminds/semver/v3"
	"pgregory.net/rapid"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
)

// A checker follows a proof without any of the code that found it: facts are looked
// up in the table, and conclusions are drawn again.
type checker struct {
	*search
	table *table
	seen  map[*incompatibility]bool
	steps int
}

func (k *checker) check(proof *incompatibility) error {
	if len(proof.terms) != 0 {
		return errors.New("the proof ends with a condition")
	}
	for n, v := range k.variables {
		if v.listed {
			for tag := range k.table.packages[v.name] {
				if _, err := semver.StrictNewVersion(tag[min(1, len(tag)):]); err == nil &&
					!slices.ContainsFunc(v.candidates, func(c candidate) bool { return c.version.Tag == tag }) {
					return fmt.Errorf("package %d, %s, has a version %s that was left out", n, v.name, tag)
				}
			}
		}
	}
	return k.step(proof)
}

func (k *checker) step(c *incompatibility) error {
	if k.seen[c] {
		return nil
	}
	k.seen[c] = true
	k.steps++
	if c.cause.kind != derived {
		if why := k.fact(c); why != "" {
			return fmt.Errorf("%s: %s", k.search.describeFact(c), why)
		}
		return nil
	}
	if why := k.follows(c); why != "" {
		return fmt.Errorf("%s: %s", k.conclusion(c), why)
	}
	return errors.Join(k.step(c.cause.left), k.step(c.cause.right))
}

// follows checks that every assignment that satisfies the terms of a conclusion
// satisfies the terms of one of its premises.
func (k *checker) follows(c *incompatibility) string {
	for i := range k.variables[c.cause.pivot].size {
		if t, ok := c.find(c.cause.pivot); ok && !t.set.has(i) {
			continue
		}
		if l, ok := c.cause.left.find(c.cause.pivot); ok && l.set.has(i) {
			continue
		}
		if r, ok := c.cause.right.find(c.cause.pivot); !ok || !r.set.has(i) {
			return fmt.Sprintf("nothing is said of state %d of the package on which it rests", i)
		}
	}
	for _, premise := range []*incompatibility{c.cause.left, c.cause.right} {
		for _, p := range premise.terms {
			if p.pkg == c.cause.pivot {
				continue
			}
			t, ok := c.find(p.pkg)
			if !ok {
				return "a condition on " + k.variables[p.pkg].name + " was lost"
			}
			for i := range k.variables[p.pkg].size {
				if t.set.has(i) && !p.set.has(i) {
					return "a condition on " + k.variables[p.pkg].name + " became weaker"
				}
			}
		}
	}
	return ""
}

// fact checks a fact against the table.
func (k *checker) fact(c *incompatibility) string {
	switch c.cause.kind {
	case required:
		if len(c.terms) == 1 && c.terms[0].pkg == 0 && c.terms[0].set.only() == 0 {
			return ""
		}
	case rootRequirement:
		r := k.roots[c.cause.root]
		if why := k.optional(c, k.numbers[r.Package]); r.Optional && why != "" {
			return why
		}
		return k.excludes(c, k.numbers[r.Package], []dependency.Dependency{asDependency(r)}, r.Exact)
	case requiredDependency, optionalDependency:
		if why := k.optional(c, c.cause.to); c.cause.kind == optionalDependency && c.cause.from != c.cause.to && why != "" {
			return why
		}
		from, _ := c.find(c.cause.from)
		v := k.variables[c.cause.from]
		for _, i := range from.set.members() {
			var deps []dependency.Dependency
			for _, d := range k.table.packages[v.name][v.candidates[i].version.Tag] {
				if d.Package == k.variables[c.cause.to].name && d.Optional == (c.cause.kind == optionalDependency) &&
					slices.Contains(c.cause.texts, d.Constraint) {
					deps = append(deps, d)
				}
			}
			if why := k.excludes(c, c.cause.to, deps, false); why != "" {
				return v.candidates[i].version.Tag + " " + why
			}
		}
		if !from.set.absent() && len(from.set.members()) > 0 {
			return ""
		}
	case circular:
		for i, n := range c.cause.cycle {
			v, to := k.variables[n], k.variables[c.cause.cycle[(i+1)%len(c.cause.cycle)]].name
			t, ok := c.find(n)
			if !ok || t.set.absent() {
				return "a package of the cycle can be absent"
			}
			for _, i := range t.set.members() {
				if !slices.ContainsFunc(
					k.table.packages[v.name][v.candidates[i].version.Tag],
					func(d dependency.Dependency) bool { return d.Package == to && !d.Optional },
				) {
					return v.candidates[i].version.Tag + " does not require " + to
				}
			}
		}
		return ""
	case unavailableVersion:
		v := k.variables[c.terms[0].pkg]
		for _, i := range c.terms[0].set.members() {
			if _, ok := k.table.packages[v.name][v.candidates[i].version.Tag]; ok {
				return v.candidates[i].version.Tag + " is there"
			}
		}
		return ""
	}
	return "it is no fact"
}

// optional checks that a fact excludes no absence of a package.
func (k *checker) optional(c *incompatibility, to int) string {
	if t, ok := c.find(to); !ok || t.set.absent() {
		return k.variables[to].name + " need not be there"
	}
	return ""
}

// excludes checks that one of the needs accepts no version that a fact excludes.
func (k *checker) excludes(c *incompatibility, to int, needs []dependency.Dependency, exact bool) string {
	v := k.variables[to]
	t, ok := c.find(to)
	why := "nothing needs it"
	for _, d := range needs {
		why = ""
		for i := 1; i < v.size; i++ {
			tag := v.candidates[i].version.Tag
			takes := accepts(d.Constraint, tag)
			if exact {
				takes = d.Constraint == tag
			}
			if takes && (!ok || t.set.has(i)) && to != c.cause.from {
				why = fmt.Sprintf("takes %s %s", v.name, tag)
			}
		}
		if why == "" {
			return ""
		}
	}
	return why
}

// provesAndHelps checks the whole explanation of a problem without a solution.
func provesAndHelps(p Problem, table *table) error {
	m := newFactStore(p.Source)
	s, err := m.solve(&p)
	var none *unsolvable
	if !errors.As(err, &none) {
		return fmt.Errorf("got %w", err)
	}
	for {
		if err := (&checker{search: s, table: table, seen: map[*incompatibility]bool{}}).check(none.proof); err != nil {
			return err
		}
		if s.exhaustive {
			break
		}
		x := &explainer{store: m, problem: p, budget: explanationBudget}
		wide, proof := x.exhaustive(p.Roots)
		if proof == nil {
			return errors.New("the second search finds no proof")
		}
		s, none = wide, &unsolvable{proof}
	}
	edits := m.explain(&p, s, none.proof).Suggestions
	if len(edits) == 0 {
		return errors.New("nothing would help")
	}
	for _, e := range edits {
		if _, err := Solve(e.Apply(p)); err != nil {
			return fmt.Errorf("%s does not help: %w", e, err)
		}
	}
	return nil
}

func TestProofsHold(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		table, roots := instance(rt, 8, 6)
		p := Problem{Roots: roots, Source: table}
		if _, err := Solve(p); !errors.Is(err, ErrUnsolvable) {
			return
		}
		if err := provesAndHelps(p, table); err != nil {
			rt.Fatal(err)
		}
	})
}

func TestProofsOfTheCorpusHold(t *testing.T) {
	if testing.Short() {
		t.Skip("solves hundreds of problems")
	}
	table := readGraph(t)
	for _, p := range refusedByCorpus(t, table) {
		if err := provesAndHelps(p, table); err != nil {
			t.Errorf("%v: %v", p.Roots, err)
		}
	}
}
