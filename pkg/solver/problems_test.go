package solver

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
)

// corpusConflicts draws sets of requests from the corpus: single ones and pairs as recorded,
// and larger ones at random. The full lane takes all of them, and many more at random.
func corpusConflicts(t *testing.T, source *table) []Problem {
	var o outcomes
	readJSON(t, "outcomes.json", &o)
	every, sets := 12, 40
	if lane.IsFull() {
		every, sets = 1, 2000
	}
	var out []Problem
	var all []string
	for i, r := range o.Roots {
		all = append(all, r.Root+"@"+r.Version)
		if i%every == 0 {
			out = append(out, Problem{Roots: []dependency.Root{corpusRoot(all[i])}, Source: source})
		}
	}
	for i, pair := range o.Pairs {
		if i%every == 0 {
			out = append(out, Problem{
				Roots: []dependency.Root{corpusRoot(pair.Roots[0]), corpusRoot(pair.Roots[1])}, Source: source,
			})
		}
		all = append(all, pair.Roots...)
	}
	for seed := range uint64(sets) {
		random := rand.New(rand.NewPCG(seed, 33))
		seen := map[string]bool{}
		p := Problem{Source: source}
		for range 3 + random.IntN(6) {
			root := corpusRoot(all[random.IntN(len(all))])
			root.By = ""
			if seen[root.Package] {
				continue
			}
			seen[root.Package] = true
			if random.IntN(3) == 0 {
				root.Exact, root.Constraint = false, ">="+root.Constraint
			}
			p.Roots = append(p.Roots, root)
		}
		out = append(out, p)
	}
	return out
}

// generated makes a problem with several major versions, prereleases, optional dependencies,
// packages and versions that do not exist, and up to seven requests.
func generated(seed uint64) Problem {
	random := rand.New(rand.NewPCG(seed, 34))
	count := 5 + random.IntN(25)
	name := func(i int) string { return fmt.Sprintf("p%02d", i) }
	tag := func() string {
		t := fmt.Sprintf("v%d.%d.%d", random.IntN(4), random.IntN(6), random.IntN(2))
		if random.IntN(8) == 0 {
			t += "-rc.1"
		}
		return t
	}
	constraint := func() string {
		format := []string{"%s", ">=%s", "<%s", "^%s", "~%s", ">=%s,<v9.0.0", "!=%s", "<=%s || v3.5.1"}[random.IntN(8)]
		return fmt.Sprintf(format, tag())
	}
	t := newTable()
	for i := range count {
		for range 1 + random.IntN(10) {
			var deps []dependency.Dependency
			for range random.IntN(4) {
				if to := i + 1 + random.IntN(count); to < count+1 { // The last package does not exist.
					deps = append(deps, dependency.Dependency{
						Package: name(to), Constraint: constraint(), Optional: random.IntN(6) == 0,
					})
				}
			}
			t.add(name(i), tag(), deps...)
		}
	}
	p := Problem{Source: t}
	for i := range 1 + random.IntN(7) {
		p.Roots = append(p.Roots, dependency.Root{
			Package: name(random.IntN(count)), Constraint: constraint(), By: fmt.Sprintf("team %d", i),
			Optional: i > 0 && random.IntN(8) == 0,
		})
	}
	return p
}
