package solver

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
)

// graph is the graph of real packages as it was published.
type graph struct {
	Aliases map[string]struct {
		Package *string `json:"package"`
	} `json:"aliases"`
	Packages map[string]struct {
		Versions map[string]struct {
			Deps []struct{ Ref, Version string } `json:"deps"`
		} `json:"versions"`
	} `json:"packages"`
}

// outcomes are the results of a plain backtracking search.
type outcomes struct {
	Roots []struct {
		Root, Version, Outcome      string
		Unresolved, MissingVersions []string
	} `json:"roots"`
	Pairs []struct {
		Roots   []string
		Outcome string
	} `json:"pairs"`
}

func readJSON(t testing.TB, name string, into any) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(corpus.Dir(t), "graph", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatal(err)
	}
}

// readGraph returns the graph as a source. References to the same package are one
// package, and references outside of the collection have no versions.
func readGraph(t testing.TB) *table {
	t.Helper()
	var g graph
	readJSON(t, "graph.json", &g)
	out := newTable()
	for name, p := range g.Packages {
		for tag, v := range p.Versions {
			var deps []dependency.Dependency
			for _, d := range v.Deps {
				to := d.Ref
				if a, ok := g.Aliases[d.Ref]; ok && a.Package != nil {
					to = *a.Package
				}
				deps = append(deps, dependency.Dependency{Package: to, Constraint: d.Version})
			}
			out.add(name, tag, deps...)
		}
	}
	return out
}

// known returns the same without needs that nothing in the graph can satisfy, as the
// plain search saw it.
func (t *table) known() *table {
	out := newTable()
	for name, versions := range t.packages {
		for tag, deps := range versions {
			out.add(name, tag, slices.DeleteFunc(slices.Clone(deps), func(d dependency.Dependency) bool {
				for have := range t.packages[d.Package] {
					if accepts(d.Constraint, have) {
						return false
					}
				}
				return true
			})...)
		}
	}
	return out
}

func corpusRoot(s string) dependency.Root {
	at := strings.LastIndex(s, "@")
	return dependency.Root{Package: s[:at], Constraint: s[at+1:], Exact: true, By: "the platform"}
}

func TestCorpusRootsAndPairs(t *testing.T) {
	if testing.Short() {
		t.Skip("solves about 1,400 problems")
	}
	var o outcomes
	readJSON(t, "outcomes.json", &o)
	all := readGraph(t)
	fewer := all.known()
	var slowest, total time.Duration
	count := map[string]int{}
	run := func(name, mode string, source *table, roots ...dependency.Root) bool {
		start := time.Now()
		s, err := Solve(Problem{Roots: roots, Source: source})
		took := time.Since(start)
		total += took
		slowest = max(slowest, took)
		var c *Conflict
		switch {
		case err == nil:
			if wrong := source.valid(roots, chosen(s)); wrong != "" {
				t.Errorf("%s: %s", name, wrong)
			}
			count[mode+" solved"]++
		case errors.As(err, &c):
			count[mode+" refused"]++
		default:
			t.Errorf("%s: %v", name, err)
		}
		return err == nil
	}
	for _, r := range o.Roots {
		name := r.Root + "@" + r.Version
		strict, loose := run(name, "root", all, corpusRoot(name)),
			run(name, "root, as far as known,", fewer, corpusRoot(name))
		excused := len(r.Unresolved)+len(r.MissingVersions) > 0
		if !loose || !strict && !excused {
			t.Errorf("%s: solved %v, %v where the plain search found %s", name, strict, loose, r.Outcome)
		}
	}
	for _, p := range o.Pairs {
		name := strings.Join(p.Roots, " and ")
		roots := []dependency.Root{corpusRoot(p.Roots[0]), corpusRoot(p.Roots[1])}
		loose := run(name, "pair, as far as known,", fewer, roots...)
		run(name, "pair", all, roots...)
		if p.Outcome == "unsat" == loose && !strings.HasPrefix(p.Outcome, "undecided") {
			t.Errorf("%s: solved %v where the plain search found %s", name, loose, p.Outcome)
		}
	}
	t.Logf("%v; slowest %v, all %v", count, slowest, total)
}
