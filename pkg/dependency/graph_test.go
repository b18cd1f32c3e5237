package dependency_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
)

// randomGraph returns a graph of a few packages, some of whose dependencies lead to
// packages that are not in it, with the names of both.
func randomGraph(rt *rapid.T) (*dependency.Graph, []string) {
	g := &dependency.Graph{}
	var names []string
	for i := range rapid.IntRange(1, 8).Draw(rt, "names") {
		names = append(names, fmt.Sprintf("registry.example.com/p%d", i))
	}
	for range rapid.IntRange(0, 16).Draw(rt, "additions") {
		from := rapid.SampledFrom(names[:max(1, len(names)-2)]).Draw(rt, "from")
		var deps []dependency.Dependency
		for _, to := range rapid.SliceOfN(rapid.SampledFrom(names), 0, 2).Draw(rt, "to") {
			deps = append(deps, dependency.Dependency{
				Package: to, Constraint: rapid.SampledFrom([]string{"", ">=v1"}).Draw(rt, "constraint"),
			})
		}
		g.Add(from, deps...)
	}
	return g, names
}

// depends reports whether a package has a direct dependency on another one.
func depends(g *dependency.Graph, from, to string) bool {
	return slices.ContainsFunc(g.Dependencies(from), func(d dependency.Dependency) bool { return d.Package == to })
}

// distances returns the length of a shortest path of at least one dependency between each
// two names (Floyd and Warshall).
func distances(g *dependency.Graph, names []string) map[[2]string]int {
	out := map[[2]string]int{}
	for _, a := range names {
		for _, b := range names {
			if depends(g, a, b) {
				out[[2]string{a, b}] = 1
			}
		}
	}
	for _, via := range names {
		for _, a := range names {
			for _, b := range names {
				first, reached := out[[2]string{a, via}]
				second, reaches := out[[2]string{via, b}]
				known, ok := out[[2]string{a, b}]
				if reached && reaches && (!ok || first+second < known) {
					out[[2]string{a, b}] = first + second
				}
			}
		}
	}
	return out
}

func TestReachableIsTheTransitiveClosure(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g, names := randomGraph(rt)
		from := rapid.SliceOfN(rapid.SampledFrom(names), 0, 2).Draw(rt, "start")
		distance, want := distances(g, names), map[string]bool{}
		for _, a := range from {
			want[a] = true
			for _, b := range names {
				if distance[[2]string{a, b}] > 0 {
					want[b] = true
				}
			}
		}
		if diff := cmp.Diff(want, g.Reachable(from...)); diff != "" {
			rt.Errorf("from %v (-want +got):\n%s", from, diff)
		}
		var orphans []string
		for _, pkg := range g.Packages() {
			if !want[pkg] {
				orphans = append(orphans, pkg)
			}
		}
		if got := g.Orphans(from...); !slices.Equal(got, orphans) {
			rt.Errorf("from %v, the orphans are %v, want %v", from, got, orphans)
		}
	})
}

func TestPathsAndCyclesAreShortest(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g, names := randomGraph(rt)
		distance := distances(g, names)
		from, to := rapid.SampledFrom(names).Draw(rt, "source"), rapid.SampledFrom(names).Draw(rt, "target")
		// length counts dependencies; zero means that there is no path.
		check := func(path []string, length int) {
			if len(path) != length+1 && (length > 0 || path != nil) {
				rt.Fatalf("%v has not %d dependencies", path, length)
			}
			for i := 1; i < len(path); i++ {
				if !depends(g, path[i-1], path[i]) {
					rt.Fatalf("%v: there is no dependency on %s", path, path[i])
				}
			}
		}
		cycle := g.Cycle(from)
		check(cycle, distance[[2]string{from, from}])
		if cycle != nil && (cycle[0] != from || cycle[len(cycle)-1] != from) {
			rt.Errorf("%v does not start and end with %s", cycle, from)
		}
		path := g.Path([]string{from}, to, nil)
		if from == to {
			if !slices.Equal(path, []string{from}) {
				rt.Errorf("the path from %s to itself is %v", from, path)
			}
			return
		}
		check(path, distance[[2]string{from, to}])
		for _, avoided := range path {
			if slices.Contains(g.Path([]string{from}, to, func(pkg string) bool { return pkg == avoided }), avoided) {
				rt.Errorf("a path contains the avoided package %s", avoided)
			}
		}
	})
}

func TestOrderPutsDependenciesFirst(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g, names := randomGraph(rt)
		distance, order := distances(g, names), g.Order()
		if !slices.Equal(slices.Sorted(slices.Values(order)), slices.Sorted(slices.Values(g.Packages()))) {
			rt.Fatalf("the order %v does not contain each of %v once", order, g.Packages())
		}
		for i, pkg := range order {
			for _, later := range order[i+1:] {
				if depends(g, pkg, later) && distance[[2]string{later, pkg}] == 0 {
					rt.Errorf("%s precedes its dependency %s", pkg, later)
				}
			}
		}
	})
}

func TestEveryPackageIsReachableFromTheRoots(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g, _ := randomGraph(rt)
		roots := g.Roots()
		if orphans := g.Orphans(roots...); len(orphans) > 0 {
			rt.Errorf("%v are not reachable from %v", orphans, roots)
		}
		for _, pkg := range g.Packages() {
			if len(g.Dependents(pkg)) == 0 && !slices.Contains(roots, pkg) {
				rt.Errorf("%s has no dependents and is not a root", pkg)
			}
		}
		for i, root := range roots {
			if !slices.Contains(g.Orphans(roots[:i]...), root) {
				rt.Errorf("%s is reachable from the roots before it, %v", root, roots[:i])
			}
		}
	})
}

func TestDependentsAreTheInverseOfDependencies(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g, names := randomGraph(rt)
		edges := map[dependency.Edge]int{}
		for _, pkg := range g.Packages() {
			for _, d := range g.Dependencies(pkg) {
				edges[dependency.Edge{From: pkg, Dependency: d}]++
			}
		}
		for _, pkg := range names {
			for _, e := range g.Dependents(pkg) {
				if edges[e]--; e.Package != pkg || edges[e] < 0 {
					rt.Errorf("%+v is not a dependency on %s", e, pkg)
				}
			}
		}
		for e, left := range edges {
			if left != 0 {
				rt.Errorf("%s has a dependent %+v that is not listed", e.Package, e)
			}
		}
	})
}

func TestComponentIsTheUndirectedClosure(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g, names := randomGraph(rt)
		start := rapid.SampledFrom(names).Draw(rt, "start")
		want := map[string]bool{start: true}
		for grown := true; grown; {
			grown = false
			for _, a := range names {
				for _, b := range names {
					if want[a] != want[b] && depends(g, a, b) {
						want[a], want[b], grown = true, true, true
					}
				}
			}
		}
		if diff := cmp.Diff(want, g.Component(start)); diff != "" {
			rt.Errorf("of %s (-want +got):\n%s", start, diff)
		}
	})
}

func TestDepthsAreLongestPaths(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g, names := randomGraph(rt)
		distance := distances(g, names)
		if slices.ContainsFunc(names, func(pkg string) bool { return distance[[2]string{pkg, pkg}] > 0 }) {
			rt.Skip("has a cycle")
		}
		depths := g.Depths()
		var longest func(pkg string) int
		longest = func(pkg string) int {
			most := 0
			for _, d := range g.Dependencies(pkg) {
				most = max(most, 1+longest(d.Package))
			}
			return most
		}
		for _, pkg := range g.Packages() {
			if depths[pkg] != longest(pkg) {
				rt.Errorf("%s has the depth %d, want %d", pkg, depths[pkg], longest(pkg))
			}
		}
	})
}

func TestAddKeepsTheOrderOfAdditions(t *testing.T) {
	var g dependency.Graph
	g.Add("b", dependency.Dependency{Package: "x"})
	g.Add("a")
	g.Add("b", dependency.Dependency{Package: "a", Constraint: "v1"})
	if got := g.Packages(); !slices.Equal(got, []string{"b", "a"}) {
		t.Errorf("packages are %v", got)
	}
	if got := g.Dependencies("b"); len(got) != 2 || got[0].Package != "x" || got[1].Package != "a" {
		t.Errorf("the dependencies of b are %v", got)
	}
	if g.Contains("x") || !g.Contains("a") {
		t.Error("only packages that were added are in the graph")
	}
	if got := g.Order(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("the order is %v", got)
	}
}
