package solver

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
)

// instance draws a problem of up to n packages with up to v versions each.
func instance(rt *rapid.T, n, v int) (*table, []dependency.Root) {
	t := newTable()
	count := rapid.IntRange(1, n).Draw(rt, "packages")
	name := func(i int) string { return fmt.Sprintf("p%02d", i) }
	dependencyOn := func(i int) dependency.Dependency {
		return dependency.Dependency{
			Package:    name(i),
			Constraint: rapid.SampledFrom(constraints).Draw(rt, "constraint"),
			Optional:   rapid.IntRange(0, 5).Draw(rt, "optional") == 5,
		}
	}
	for i := range count {
		t.packages[name(i)] = map[string][]dependency.Dependency{}
		for range rapid.IntRange(1, v).Draw(rt, "versions") {
			tag := rapid.SampledFrom(tags).Draw(rt, "tag")
			var deps []dependency.Dependency
			for range rapid.IntRange(0, 3).Draw(rt, "dependencies") {
				// Mostly acyclic, as real packages are.
				if i+1 < count {
					deps = append(deps, dependencyOn(rapid.IntRange(i+1, count-1).Draw(rt, "to")))
				}
				if d := dependencyOn(rapid.IntRange(0, i).Draw(rt, "back")); d.Optional {
					deps = append(deps, d)
				}
			}
			t.add(name(i), tag, deps...)
		}
	}
	var roots []dependency.Root
	for i := range rapid.IntRange(1, min(3, count)).Draw(rt, "roots") {
		d := dependencyOn(rapid.IntRange(0, count-1).Draw(rt, "root"))
		roots = append(roots, dependency.Root{
			Package: d.Package, Constraint: d.Constraint, By: fmt.Sprintf("root%d", i), Optional: i > 0 && d.Optional,
		})
	}
	return t, roots
}

var tags = []string{"v1.0.0", "v1.1.0", "v1.2.0", "v2.0.0", "v2.1.0", "v3.0.0", "2.2.0", "v3.1.0-rc.1", "v1", "latest"}

var constraints = []string{
	"", "v1", "v2", ">=v1.1.0", "<v2.0.0", ">=v1.0.0,<v3.0.0", "v2.0.0", "v1.0.0", "^1.1.0", "~1.1", "!=v2.0.0",
	">=v2.0.0", "v1.0.0 || v3.0.0", ">=v3.0.0-0", "v3.0.0",
}

// brute tries everything.
func (t *table) brute(roots []dependency.Root) map[string]string {
	var try func(chosen map[string]string, open []dependency.Dependency) map[string]string
	try = func(chosen map[string]string, open []dependency.Dependency) map[string]string {
		if len(open) == 0 {
			if t.valid(roots, chosen) != "" {
				return nil // An optional dependency does not fit.
			}
			return chosen
		}
		d := open[0]
		if d.Optional {
			return try(chosen, open[1:])
		}
		if tag, ok := chosen[d.Package]; ok {
			if !accepts(d.Constraint, tag) {
				return nil
			}
			return try(chosen, open[1:])
		}
		for tag, deps := range t.packages[d.Package] {
			if tag == "v1" || !accepts(d.Constraint, tag) {
				continue
			}
			chosen[d.Package] = tag
			if found := try(chosen, slices.Concat(open[1:], deps)); found != nil {
				return found
			}
			delete(chosen, d.Package)
		}
		return nil
	}
	var open []dependency.Dependency
	for _, r := range roots {
		open = append(open, asDependency(r))
	}
	return try(map[string]string{}, open)
}

func TestBruteForceAgrees(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		table, roots := instance(rt, 6, 5)
		want := table.brute(roots)
		got, err := Solve(Problem{Roots: roots, Source: table})
		switch {
		case err == nil && want == nil:
			rt.Fatalf("found %v where there is none", chosen(got))
		case err != nil && want != nil:
			rt.Fatalf("%v, but there is %v", err, want)
		case err != nil && !errors.Is(err, ErrUnsolvable):
			rt.Fatal(err)
		case err == nil:
			if wrong := table.valid(roots, chosen(got)); wrong != "" {
				rt.Fatal(wrong)
			}
		}
		for what, times := range table.asked {
			if times > 1 {
				rt.Errorf("asked %d times for %s", times, what)
			}
		}
	})
}
