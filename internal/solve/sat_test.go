package solve

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/crillab/gophersat/solver"
)

// medium makes a problem that brute force could not decide.
func medium(seed uint64) (*table, []Root) {
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
			var deps []Dependency
			for range random.IntN(4) {
				if to := random.IntN(count); to != i {
					deps = append(deps, Dependency{Package: name(to), Constraint: constraint(), Optional: random.IntN(6) == 0})
				}
			}
			t.add(name(i), fmt.Sprintf("v1.%d.0", v), deps...)
		}
	}
	var roots []Root
	for range 1 + random.IntN(4) {
		roots = append(roots, Root{Package: name(random.IntN(count)), Constraint: constraint(), Name: "root"})
	}
	if random.IntN(3) == 0 {
		roots = append(roots, Root{Package: name(random.IntN(count)), Constraint: constraint(), Name: "other", Optional: true})
	}
	return t, roots
}

// satisfiable asks another kind of solver.
func satisfiable(t *table, roots []Root) bool {
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
	either := func(d Dependency, clause ...int) {
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
		either(r.dependency())
	}
	for v, n := range number {
		for _, d := range t.packages[v.pkg][v.tag] {
			either(d, -n)
		}
	}
	for _, c := range clauses {
		if len(c) == 0 {
			return false
		}
	}
	return solver.New(solver.ParseSlice(clauses)).Solve() == solver.Sat
}

func TestSATOracleAgrees(t *testing.T) {
	count := map[bool]int{}
	instances := uint64(600)
	if testing.Short() {
		instances = 60
	}
	for seed := range instances {
		table, roots := medium(seed)
		want := satisfiable(table, roots)
		s := newSearch(&Problem{Roots: roots, Source: table}, newMemory(table), false)
		err := s.run()
		if want != (err == nil) {
			t.Fatalf("instance %d: got %v, want %v", seed, err, want)
		}
		if err == nil {
			if wrong := table.valid(roots, chosen(s.solution())); wrong != "" {
				t.Fatalf("instance %d: %s", seed, wrong)
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
	t.Logf("%v", count)
}
