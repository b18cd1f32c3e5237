package solver

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/crillab/gophersat/solver"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
)

// medium makes a problem that brute force could not decide.
func medium(seed uint64) (*table, []dependency.Root) {
	random := rand.New(rand.NewPCG(seed, 7))
	count := 10 + random.IntN(30)
	name := func(i int) string { return fmt.Sprintf("p%02d", i) }
	constraint := func() string {
		from := random.IntN(8)
		switch random.IntN(4) {
		case 0:
			return fmt.Sprintf("v1.%d.0", from)
		case 1:
			return fmt.Sprintf(">=v1.%d.0", from)
		case 2:
			return fmt.Sprintf(">=v1.%d.0,<v1.%d.0", from, from+1+random.IntN(4))
		}
		return fmt.Sprintf("<=v1.%d.0 || v1.9.0", from)
	}
	t := newTable()
	for i := range count {
		for v := range 2 + random.IntN(8) {
			var deps []dependency.Dependency
			for range random.IntN(4) {
				if to := random.IntN(count); to != i {
					deps = append(deps, dependency.Dependency{
						Package: name(to), Constraint: constraint(), Optional: random.IntN(6) == 0,
					})
				}
			}
			t.add(name(i), fmt.Sprintf("v1.%d.0", v), deps...)
		}
	}
	var roots []dependency.Root
	for range 1 + random.IntN(4) {
		roots = append(roots, dependency.Root{Package: name(random.IntN(count)), Constraint: constraint(), By: "root"})
	}
	if random.IntN(3) == 0 {
		roots = append(roots, dependency.Root{
			Package: name(random.IntN(count)), Constraint: constraint(), By: "other", Optional: true,
		})
	}
	return t, roots
}

// satisfiable asks another kind of solver, which can exclude cycles as well.
func satisfiable(t *table, roots []dependency.Root, acyclic bool) bool {
	type version struct{ pkg, tag string }
	number := map[version]int{}
	var clauses [][]int
	for _, pkg := range slices.Sorted(maps.Keys(t.packages)) {
		tags := slices.Sorted(maps.Keys(t.packages[pkg]))
		for i, tag := range tags {
			number[version{pkg, tag}] = len(number) + 1
			for _, other := range tags[:i] {
				clauses = append(clauses, []int{-number[version{pkg, tag}], -number[version{pkg, other}]})
			}
		}
	}
	either := func(d dependency.Dependency, clause ...int) {
		if d.Optional {
			for tag := range t.packages[d.Package] {
				if !accepts(d.Constraint, tag) {
					clauses = append(clauses, append(slices.Clone(clause), -number[version{d.Package, tag}]))
				}
			}
			return
		}
		for tag := range t.packages[d.Package] {
			if accepts(d.Constraint, tag) {
				clause = append(clause, number[version{d.Package, tag}])
			}
		}
		clauses = append(clauses, clause)
	}
	for _, r := range roots {
		either(asDependency(r))
	}
	for v, n := range number {
		for _, d := range t.packages[v.pkg][v.tag] {
			either(d, -n)
		}
	}
	if acyclic {
		clauses = append(clauses, t.ordered(len(number), func(pkg, tag string) int { return number[version{pkg, tag}] })...)
	}
	for _, c := range clauses {
		if len(c) == 0 {
			return false
		}
	}
	return solver.New(solver.ParseSlice(clauses)).Solve() == solver.Sat
}

func TestSATOracleAgrees(t *testing.T) {
	count, cycles := map[bool]int{}, 0
	instances := uint64(600)
	if testing.Short() {
		instances = 60
	}
	for seed := range instances {
		table, roots := medium(seed)
		want := satisfiable(table, roots, false)
		s := newSearch(&Problem{Roots: roots, Source: table}, newFactStore(table), false)
		err := s.run()
		var none *unsolvable
		if want && errors.As(err, &none) && hasCycle(none.proof) {
			want = satisfiable(table, roots, true)
			cycles++
		}
		if want != (err == nil) {
			t.Fatalf("instance %d: got %v, want %v", seed, err, want)
		}
		if err == nil {
			if wrong := table.valid(roots, chosen(s.solution())); wrong != "" {
				t.Fatalf("instance %d: %s", seed, wrong)
			}
			if cycle := s.cycle(); cycle != nil {
				t.Fatalf("instance %d: the solution has the cycle %v", seed, s.cyclePath(cycle))
			}
		} else if seed%10 == 0 {
			if err := provesAndHelps(Problem{Roots: roots, Source: table}, table); err != nil {
				t.Fatalf("instance %d: %v", seed, err)
			}
		}
		count[want]++
	}
	if count[true] < int(instances)/5 || count[false] < int(instances)/5 {
		t.Errorf("%v is too one-sided to prove much", count)
	}
	t.Logf("%v, of which %d depend on cycles", count, cycles)
}

// ordered returns clauses that allow no cycle: required packages come first in an order
// of all packages, whose variables follow after first.
func (t *table) ordered(first int, number func(pkg, tag string) int) [][]int {
	packages := slices.Sorted(maps.Keys(t.packages))
	n := len(packages)
	before := func(i, j int) int { return first + 1 + i*n + j }
	var out [][]int
	for i, pkg := range packages {
		out = append(out, []int{-before(i, i)})
		for j := range n {
			for k := range n {
				out = append(out, []int{-before(i, j), -before(j, k), before(i, k)})
			}
		}
		for tag, deps := range t.packages[pkg] {
			for _, d := range deps {
				if j := slices.Index(packages, d.Package); j >= 0 && !d.Optional {
					out = append(out, []int{-number(pkg, tag), before(j, i)})
				}
			}
		}
	}
	return out
}
