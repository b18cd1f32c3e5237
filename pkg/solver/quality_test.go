package solver

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Masterminds/semver/v3"

	"github.com/xpkg-dev/xpkg/internal/testing/lane"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
)

// tally counts how many of some results are as they should be.
type tally struct{ good, all int }

func (t *tally) count(good bool) bool {
	t.all++
	if good {
		t.good++
	}
	return good
}

func (t tally) String() string { return fmt.Sprintf("%d of %d", t.good, t.all) }

// quality measures explanations by solving related problems, without the code that made
// the explanations.
type quality struct {
	t                                                 *testing.T
	minimal, nearest, marked, removals, needed, lines tally
	kept                                              tally
	longest                                           int
	slowest                                           time.Duration
}

func solvable(p Problem) bool {
	p.SkipExplanation = true
	_, err := Solve(p)
	return err == nil
}

func (q *quality) check(p Problem) {
	start := time.Now()
	_, err := Solve(p)
	q.slowest = max(q.slowest, time.Since(start))
	var c *Conflict
	if !errors.As(err, &c) {
		return
	}
	e := c.Explanation
	if !q.minimal.count(minimalConflict(p, e.Roots)) {
		q.t.Logf("not minimal: %v\n%s", p.Roots, e)
	}
	for line := range strings.Lines(e.String()) {
		line = strings.TrimSuffix(line, "\n")
		q.longest = max(q.longest, len(line))
		if !q.lines.count(len(line) <= lineLength) {
			q.t.Logf("%d characters: %s", len(line), line)
		}
	}
	if len(e.Suggestions) == 0 {
		q.t.Errorf("%v: there are no suggestions", p.Roots)
	}
	q.kept.count(slices.ContainsFunc(e.Suggestions, func(s Suggestion) bool { return s.Remove == nil }))
	for _, s := range e.Suggestions {
		q.suggestion(p, s)
	}
}

// minimalConflict reports whether roots have no solution, and have one without any of them.
func minimalConflict(p Problem, roots []dependency.Root) bool {
	p.Roots = roots
	if solvable(p) {
		return false
	}
	for i := range roots {
		p.Roots = slices.Delete(slices.Clone(roots), i, i+1)
		if !solvable(p) {
			return false
		}
	}
	return true
}

func (q *quality) suggestion(p Problem, s Suggestion) {
	if !solvable(s.Apply(p)) {
		q.t.Errorf("%v: %s does not help", p.Roots, s)
	}
	for i, one := range s.All {
		rest := Suggestion{All: slices.Delete(slices.Clone(s.All), i, i+1)}
		if solvable(rest.Apply(p)) {
			q.t.Errorf("%v: %s contains %s, which is not necessary", p.Roots, s, one)
		}
		if one.Relax != nil {
			q.relaxed(rest.Apply(p), one)
		}
	}
	switch {
	case s.Relax != nil:
		q.relaxed(p, s)
	case s.Remove != nil:
		good := true
		for i := range s.Remove {
			fewer := Suggestion{Remove: slices.Delete(slices.Clone(s.Remove), i, i+1)}
			good = good && !solvable(fewer.Apply(p))
		}
		if !q.removals.count(good) {
			q.t.Logf("superfluous: %s", s)
		}
	case s.Publish != nil && s.To != "":
		if !q.needed.count(!belowAccepted(p, s)) {
			q.t.Logf("below the required version: %s", s)
		}
	}
}

// belowAccepted reports whether a suggested version is below all that a constraint accepts.
func belowAccepted(p Problem, s Suggestion) bool {
	d := s.Publish.Dependency
	to := release(s.To)
	if base := lowest(p, d.Package, func(tag string) bool { return accepts(d.Constraint, tag) }); base != nil {
		return to.LessThan(base)
	}
	base := namedIn(d.Constraint)
	return base == nil || to.LessThan(base)
}

func release(tag string) *semver.Version {
	tag, _, _ = strings.Cut(tag, "@")
	v, err := semver.NewVersion(tag)
	if err != nil || strings.Count(tag, ".") < 2 {
		return nil
	}
	return v
}

// releases lists the releases of a package, lowest first.
func releases(p Problem, pkg string) []string {
	tags, _ := p.Source.Versions(pkg)
	tags = slices.DeleteFunc(slices.Clone(tags), func(tag string) bool {
		v := release(tag)
		return v == nil ||
			v.Prerelease() != ""
	})
	slices.SortFunc(tags, func(a, b string) int { return release(a).Compare(release(b)) })
	return tags
}

func lowest(p Problem, pkg string, accepted func(string) bool) *semver.Version {
	for _, tag := range releases(p, pkg) {
		if accepted(tag) {
			return release(tag)
		}
	}
	return nil
}

// namedIn returns the first version that a constraint names, or nil.
func namedIn(constraint string) *semver.Version {
	fields := strings.FieldsFunc(constraint, func(r rune) bool { return strings.ContainsRune("<>=~^!, |", r) })
	for _, f := range fields {
		if v, err := semver.NewVersion(f); err == nil {
			return v
		}
	}
	return nil
}

// relaxed checks that a change of a request is the nearest version above the requested one,
// or the highest one with the same major version, or, if no version above it helps, marked as
// older and the nearest one below.
func (q *quality) relaxed(p Problem, s Suggestion) {
	root := *s.Relax
	to := release(s.To)
	if to == nil || to.Prerelease() != "" {
		return // Neither older nor newer.
	}
	fits := func(tag string) bool { return accepts(root.Constraint, tag) }
	if root.Exact {
		fits = func(tag string) bool { return tag == root.Constraint }
	}
	base := lowest(p, root.Package, fits)
	if base == nil {
		base = namedIn(root.Constraint)
	}
	if base == nil {
		return // A tag that is not a version, so that nothing is near to it.
	}
	works := func(from, below *semver.Version) bool {
		for _, tag := range releases(p, root.Package) {
			v := release(tag)
			inside := (v.GreaterThan(from) || v.Equal(from) && from == base) && (below == nil || v.LessThan(below))
			if inside && !fits(tag) && solvable(Suggestion{Relax: &root, To: tag}.Apply(p)) {
				return true
			}
		}
		return false
	}
	if !q.marked.count(s.Older == to.LessThan(base)) {
		q.t.Logf("%s: the base is %s", s, base)
	}
	var good bool
	if to.LessThan(base) {
		good = !works(to, nil)
	} else {
		nextMajor := base.IncMajor()
		good = !works(base, to) || to.Major() == base.Major() && !works(to, &nextMajor)
	}
	if !q.nearest.count(good) {
		q.t.Logf("not the nearest: %s of %v", s, p.Roots)
	}
}

// report logs the measured numbers, and fails for every one that is not complete.
func (q *quality) report() {
	q.t.Helper()
	q.t.Logf(
		"longest line %d; slowest explanation %v; with another change than removals: %s", q.longest, q.slowest, q.kept,
	)
	for _, row := range []struct {
		name string
		tally
	}{
		{"minimal explanations", q.minimal}, {"nearest versions", q.nearest}, {"older versions marked", q.marked},
		{"minimal removals", q.removals},
		{"authors asked for no older version", q.needed}, {fmt.Sprintf("lines of up to %d characters", lineLength), q.lines},
	} {
		q.t.Logf("%s: %s", row.name, row.tally)
		if row.good != row.all || row.all == 0 {
			q.t.Errorf("%s: %s", row.name, row.tally)
		}
	}
}

// Explanations name no root that is not part of the conflict, and suggestions are the
// smallest changes that help.
func TestExplanationsOfTheCorpusAreMinimal(t *testing.T) {
	if testing.Short() {
		t.Skip("solves thousands of problems")
	}
	source := readGraph(t)
	q := &quality{t: t}
	for _, p := range corpusConflicts(t, source) {
		q.check(p)
	}
	q.report()
}

// The same holds for generated problems. The full lane generates many more.
func TestExplanationsOfGeneratedProblemsAreMinimal(t *testing.T) {
	q := &quality{t: t}
	seeds := uint64(150)
	if lane.IsFull() {
		seeds = 20_000
	}
	for seed := range seeds {
		table, roots := medium(seed)
		for _, p := range []Problem{{Roots: roots, Source: table}, generated(seed)} {
			q.check(p)
		}
	}
	q.report()
}
