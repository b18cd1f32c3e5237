package solver

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// backtracking returns a problem in which the newest versions always fail: every package has
// 200 versions, each requires at most the same version of the next package, and only the
// oldest versions satisfy the last one.
func backtracking(packages, versions int) (*table, []dependency.Root) {
	t := newTable()
	name := func(i int) string { return fmt.Sprintf("p%03d", i) }
	for i := range packages {
		for v := range versions {
			var deps []dependency.Dependency
			if i+1 < packages {
				deps = append(deps, dependency.Dependency{Package: name(i + 1), Constraint: fmt.Sprintf("<=v1.%d.0", v)})
			}
			if i+2 < packages {
				deps = append(deps, dependency.Dependency{Package: name(i + 2), Constraint: fmt.Sprintf(">=v1.%d.0", v/2)})
			}
			if i > 0 && v > versions/10 {
				deps = append(deps, dependency.Dependency{Package: "shared", Constraint: fmt.Sprintf("v1.%d.0", v)})
			}
			t.add(name(i), fmt.Sprintf("v1.%d.0", v), deps...)
		}
	}
	for v := range versions / 10 {
		t.add("shared", fmt.Sprintf("v1.%d.0", v))
	}
	return t, []dependency.Root{{Package: name(0)}, {Package: "shared", Constraint: ">=v1.0.0"}}
}

// layered returns a graph like published ones: each package requires three packages of the
// next layer, mostly with a minimum version, and one package in fifty does not accept the
// newest version of its dependency.
func layered(packages, versions int) (*table, []dependency.Root) {
	t := newTable()
	name := func(i int) string { return fmt.Sprintf("p%05d", i) }
	for i := range packages {
		for v := range versions {
			var deps []dependency.Dependency
			for k := 1; k <= 3; k++ {
				constraint := fmt.Sprintf(">=v1.%d.0", v/2)
				if (i+k)%50 == 0 {
					constraint += fmt.Sprintf(",<v1.%d.0", versions-1)
				}
				if to := i*2 + k*k; to < packages {
					deps = append(deps, dependency.Dependency{Package: name(to), Constraint: constraint})
				}
			}
			t.add(name(i), fmt.Sprintf("v1.%d.0", v), deps...)
		}
	}
	count := 5 + packages/100
	roots := make([]dependency.Root, 0, count)
	for i := range count {
		roots = append(roots, dependency.Root{Package: name(i * packages / count)})
	}
	return t, roots
}

// exhausting returns a package of which every version needs another one that does not exist.
func exhausting(versions int) (*table, []dependency.Root) {
	t := newTable()
	for v := range versions {
		t.add("a", fmt.Sprintf("v1.%d.0", v), dependency.Dependency{Package: "b", Constraint: fmt.Sprintf("v2.%d.0", v)})
		t.add("b", fmt.Sprintf("v1.%d.0", v))
	}
	return t, []dependency.Root{{Package: "a"}}
}

// The work of a search is counted in words, so the limit holds on every machine:
// about 2 million words take about 10 ms.
//
// hardening: F9
func TestWorkIsBounded(t *testing.T) {
	steps := func(table *table, roots []dependency.Root) int {
		s, err := Solve(Problem{Roots: roots, Source: table})
		var e *Exhausted
		if err != nil && !errors.As(err, &e) {
			t.Fatal(err)
		}
		if err != nil {
			return e.Steps
		}
		return s.Steps
	}
	if got := steps(backtracking(100, 200)); got > 2_500_000 {
		t.Errorf("100 packages of 200 versions took %d steps", got)
	}
	small, large := steps(layered(300, 20)), steps(layered(3000, 20))
	if large > 10*small*50 {
		t.Errorf("ten times as many packages took %d steps instead of %d", large, small)
	}
	if got := steps(pigeons(14)); got < DefaultBudget || got > DefaultBudget+DefaultBudget/20 {
		t.Errorf("the adversary was ended after %d steps", got)
	}
}

// A root that packages far away exclude costs one far backjump for each package on the way to it, and
// not for each of their 20 versions.
func TestFarBackjumpsAreFew(t *testing.T) {
	table, roots := layered(3000, 20)
	s, err := newFactStore(table).solve(&Problem{Roots: roots, Source: table})
	if err != nil {
		t.Fatal(err)
	}
	if s.conflicts > 60 {
		t.Errorf("3000 packages caused %d conflicts", s.conflicts)
	}
}

// The explanation of a conflict of very many versions names the packages and the ranges, and
// not each version.
//
// hardening: F9
func TestConflictOfManyVersionsIsExplained(t *testing.T) {
	const longest = 300
	for _, versions := range []int{10, 300, 3000} {
		table, roots := exhausting(versions)
		_, err := Solve(Problem{Roots: roots, Source: table})
		want := []string{
			"a cannot be installed at all: you request a, which requires b v2.0.0, v2.1.0, ",
			fmt.Sprintf(" %d more or ", versions-3),
			fmt.Sprintf(", which does not exist (versions: v1.0.0 to v1.%d.0)", versions-1),
		}
		if !errors.Is(err, ErrUnsolvable) || len(err.Error()) > longest {
			t.Errorf("%d versions: got %.1000v, want %s in %d characters", versions, err, ErrUnsolvable.Name, longest)
			continue
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%d versions: %q does not contain %q", versions, err, part)
			}
		}
	}
}

// A search that is stopped names the packages with the most conflicts, and the remedy.
//
// hardening: F9
func TestStoppedSearchIsExplained(t *testing.T) {
	for name, problem := range map[string]func() (*table, []dependency.Root){
		"pigeons":         func() (*table, []dependency.Root) { return pigeons(14) },
		"10,000 versions": func() (*table, []dependency.Root) { return exhausting(10_000) },
	} {
		table, roots := problem()
		_, err := Solve(Problem{Roots: roots, Source: table})
		var e *Exhausted
		if !errors.As(err, &e) || len(e.Packages) == 0 {
			t.Errorf("%s: got %v, want the packages with the most conflicts", name, err)
			continue
		}
		if do := errcode.From(err).Do; !strings.Contains(do, "Request an exact version of ") ||
			!strings.Contains(do, e.Packages[0]) {
			t.Errorf("%s: the remedy %q does not name %s", name, do, e.Packages[0])
		}
	}
}

func BenchmarkBacktracking(b *testing.B) {
	table, roots := backtracking(100, 200)
	table.listLikeRegistries()
	for b.Loop() {
		s, err := Solve(Problem{Roots: roots, Source: table})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(s.Steps), "steps")
		b.ReportMetric(float64(len(s.Picks)), "picks")
	}
}

func BenchmarkSizes(b *testing.B) {
	for _, size := range []int{10, 30, 100, 300, 1000, 3000, 10000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			table, roots := layered(size, 20)
			table.listLikeRegistries()
			for b.Loop() {
				s, err := Solve(Problem{Roots: roots, Source: table})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(len(s.Picks)), "picks")
				b.ReportMetric(float64(s.Steps)/float64(size), "steps/package")
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*size), "µs/package")
		})
	}
}

func BenchmarkAdversary(b *testing.B) {
	table, roots := pigeons(14)
	for b.Loop() {
		start := time.Now()
		if _, err := Solve(Problem{Roots: roots, Source: table}); !errors.Is(err, ErrBudget) {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(start).Seconds(), "s")
	}
}

// BenchmarkWorstExplanation explains a conflict of 3,000 versions, each of which requires another version that does not
// exist.
func BenchmarkWorstExplanation(b *testing.B) {
	table, roots := exhausting(3000)
	for b.Loop() {
		_, err := Solve(Problem{Roots: roots, Source: table})
		if !errors.Is(err, ErrUnsolvable) || err.Error() == "" {
			b.Fatal(err)
		}
	}
}
