package solver

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

const (
	digestA = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	digestB = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

// rootsOf reads "package constraint; …".
func rootsOf(text string) []dependency.Root {
	var out []dependency.Root
	for ask := range strings.SplitSeq(text, ";") {
		pkg, constraint, _ := strings.Cut(strings.TrimSpace(ask), " ")
		root := dependency.Root{Package: pkg, Constraint: constraint}
		if pkg, root.Optional = strings.CutPrefix(pkg, "?"); root.Optional {
			root.Package, root.By = pkg, "provider/other"
		}
		out = append(out, root)
	}
	return out
}

// summary returns a solution in one line.
func summary(s Solution) string {
	var out []string
	for _, p := range s.Picks {
		out = append(out, p.Package+" "+version.Pin{Tag: p.Tag, Digest: p.Digest}.String())
	}
	return strings.Join(out, "; ")
}

func TestSolve(t *testing.T) {
	for _, tc := range []struct {
		name, table, roots, want string
		problem                  Problem
	}{
		{name: "the highest version that fits", table: "a v1.0.0\na v1.2.0\na v2.0.0", roots: "a <v2", want: "a v1.2.0"},
		{name: "versions with and without a v are ordered together", table: "a 1.9.0\na v1.10.0\na 1.2.0", roots: "a", want: "a v1.10.0"},
		{name: "the tag that is named, of two tags of a version", table: "a 1.0.0\na v1.0.0", roots: "a 1.0.0", want: "a 1.0.0"},
		{name: "the tag that a dependency names, of two tags of a version", table: "r v1.0.0: a 1.0.0\na 1.0.0\na v1.0.0", roots: "r; a", want: "a 1.0.0; r v1.0.0"},
		{name: "either tag of a version satisfies the other", table: "r v1.0.0: a 1.0.0\na v1.0.0", roots: "r; a v1", want: "a v1.0.0; r v1.0.0"},
		{name: "the tag with a v, of two tags of a version that nothing names", table: "a 1.0.0\na v1.0.0", roots: "a", want: "a v1.0.0"},
		{name: "what depends comes with what it needs", table: "a v1.0.0: b v1; c\nb v1.0.0: c v1.0.0\nb v2.0.0\nc v1.0.0\nc v1.1.0", roots: "a", want: "a v1.0.0; b v1.0.0; c v1.0.0"},
		{name: "an older parent when the newest does not go with the rest", table: "a v2.0.0: c v2\na v1.0.0: c v1\nb v1.0.0: c v1\nc v1.0.0\nc v2.0.0", roots: "a; b", want: "a v1.0.0; b v1.0.0; c v1.0.0"},
		{name: "partial tags are set aside", table: "a v1.0.0\na v1\na v2", roots: "a", want: "a v1.0.0"},
		{name: "tags that are no versions can be named", table: "a main: b v1\na v1.0.0\nb v1.0.0", roots: "a main", want: "a main; b v1.0.0"},
		{name: "four numbers are no version", table: "a 1.2.3.4\na v1.0.0", roots: "a", want: "a v1.0.0"},
		{name: "a moving tag that is named exactly", table: "a v1\na v1.5.0", problem: Problem{Roots: []dependency.Root{{
			Package: "a", Constraint: "v1", Exact: true,
		}}}, want: "a v1"},
		{name: "prereleases only where the constraint names one", table: "a v1.0.0\na v1.1.0-rc.1", roots: "a >=v1.0.0", want: "a v1.0.0"},
		{name: "prereleases where the constraint names one", table: "a v1.0.0\na v1.1.0-rc.1", roots: "a >=v1.0.0-0", want: "a v1.1.0-rc.1"},
		{name: "a prerelease rather than nothing", table: "a v1.1.0-rc.1", roots: "a", want: "a v1.1.0-rc.1"},
		{name: "a prerelease is the last choice without a constraint", table: "a v1.0.0\na v1.1.0-rc.1", roots: "a", want: "a v1.0.0"},
		{name: "a digest that nobody lists", table: "a v1.0.0\na " + digestA + ": b\nb v1.0.0", roots: "a " +
			digestA, want: "a " + digestA + "; b v1.0.0"},
		{name: "a digest whose tag is known satisfies by the tag", table: "a v1.0.0@" + digestA + "\na v1.2.0", roots: "a " +
			digestA + "; a ^v1.0.0", want: "a v1.0.0@" + digestA},
		{name: "a tag with a digest satisfies by the tag and holds by the digest", table: "a v1.0.0\na v1.2.0\na v1.0.0@" +
			digestA, roots: "a v1.0.0@" + digestA + "; a ~v1.0", want: "a v1.0.0@" + digestA},
		{name: "the installed version still fits", table: "a v1.0.0\na v1.2.0", roots: "a v1", problem: Problem{
			Installed: map[string]string{"a": "v1.0.0"},
		}, want: "a v1.0.0"},
		{name: "what is installed does not fit", table: "a v1.0.0\na v1.2.0\na v2.0.0\na v2.1.0", roots: "a v2", problem: Problem{
			Installed: map[string]string{"a": "v1.0.0"},
		}, want: "a v2.1.0"},
		{name: "the nearest to what is installed", table: "a v1.0.0\na v1.2.0\na v2.0.0\na v2.1.0", roots: "a v2", problem: Problem{
			Installed: map[string]string{"a": "v1.0.0"}, Nearest: true,
		}, want: "a v2.0.0"},
		{name: "nothing is near to a digest", table: "a v1.0.0\na v1.2.0\na v2.0.0", roots: "a v1", problem: Problem{
			Installed: map[string]string{"a": "sha256:" + strings.Repeat("0", 64)}, Nearest: true,
		}, want: "a v1.2.0"},
		{name: "the nearest below what is installed", table: "a v1.0.0\na v1.2.0\na v2.0.0", roots: "a v1", problem: Problem{
			Installed: map[string]string{"a": "v2.0.0"}, Nearest: true,
		}, want: "a v1.2.0"},
		{name: "others fit themselves to what is installed", table: "r v1.0.0: a; b\na v1.0.0: b v1\na v2.0.0: b v2\nb v1.0.0\nb v2.0.0", roots: "r", problem: Problem{
			Installed: map[string]string{"b": "v1.0.0"},
		}, want: "a v1.0.0; b v1.0.0; r v1.0.0"},
		{name: "what is installed by tag and digest", table: "a v1.0.0@" + digestB +
			"\na v1.2.0", roots: "a v1", problem: Problem{Installed: map[string]string{"a": "v1.0.0@" + digestB}},
			want: "a v1.0.0@" +
				digestB},
		{name: "an installed version that is gone from the registry gives way", table: "a v1.2.0", roots: "a v1", problem: Problem{
			Installed: map[string]string{"a": "v1.0.0"},
		}, want: "a v1.2.0"},
		{name: "upward finds the version above", table: "r v1.0.0: a >=v1.1.0\na v1.0.0\na v1.2.0", roots: "r", problem: Problem{
			Installed: map[string]string{"a": "v1.0.0"}, Moves: Upward,
		}, want: "a v1.2.0; r v1.0.0"},
		{name: "freely goes down", table: "r v1.0.0: a <v1.1.0\na v1.0.0\na v1.2.0", roots: "r", problem: Problem{
			Installed: map[string]string{"a": "v1.2.0"},
		}, want: "a v1.0.0; r v1.0.0"},
		{name: "what is optional is not installed, nor looked for", table: "a v1.0.0: ?b v1; ?gone v1\nb v1.0.0", roots: "a", want: "a v1.0.0"},
		{name: "what is optional and asked for fits", table: "a v1.0.0: ?b v1\nb v1.0.0\nb v2.0.0", roots: "a; b", want: "a v1.0.0; b v1.0.0"},
		{name: "what is optional and needed by somebody else fits", table: "a v1.0.0: ?b v1; c\nb v1.0.0\nb v2.0.0\nc v1.0.0: b", roots: "a", want: "a v1.0.0; b v1.0.0; c v1.0.0"},
		{name: "an older one rather than one that does not fit what is there", table: "a v2.0.0: ?b v1\na v1.0.0\nb v1.0.0\nb v2.0.0", roots: "a; b v2", want: "a v1.0.0; b v2.0.0"},
		{name: "an optional package that is needed only by what is not chosen", table: "a v2.0.0: b; ?c v1\na v1.0.0: ?c v9\nb v1.0.0: c v2\nc v1.0.0\nc v2.0.0", roots: "a", want: "a v1.0.0"},
		{name: "an optional digest that nobody lists", table: "a v1.0.0: ?b " + digestA + "\nb v1.0.0\nb " +
			digestA, roots: "a; b", want: "a v1.0.0; b " + digestA},
		{name: "an optional package that is named by a digest is not listed", table: "a v1.0.0: ?b " + digestA + "\nb " +
			digestA, roots: "a; b " + digestA, want: "a v1.0.0; b " + digestA},
		{name: "each optional for the other", table: "a v1.0.0: ?b v1\nb v1.0.0: ?a v1", roots: "a; b", want: "a v1.0.0; b v1.0.0"},
		{name: "needed by what it is optional for", table: "a v1.0.0: b\nb v1.0.0: ?a v1", roots: "a", want: "a v1.0.0; b v1.0.0"},
		{name: "a condition of another dependent", table: "a v1.0.0: b\nb v1.0.0\nb v2.0.0", roots: "a; ?b <v2", want: "a v1.0.0; b v1.0.0"},
		{name: "a condition of another dependent on a package that is not installed", table: "a v1.0.0", roots: "a; ?b <v2", want: "a v1.0.0"},
		{name: "an optional version of itself", table: "a v1.0.0: ?a >=v1\na v1.1.0: ?a <v1.1", roots: "a", want: "a v1.0.0"},
		{name: "an older version without a cycle", table: "a v1.0.0\na v1.1.0: b\nb v1.0.0: a", roots: "a", want: "a v1.0.0"},
		{name: "an older dependency without a cycle", table: "a v1.0.0: b\nb v1.0.0\nb v1.1.0: c\nb v1.2.0: c\nc v1.0.0: a", roots: "a", want: "a v1.0.0; b v1.0.0"},
		{name: "nothing asked, nothing chosen", roots: "", problem: Problem{Roots: []dependency.Root{}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := tc.problem
			p.Source = parseTable(tc.table)
			if p.Roots == nil {
				p.Roots = rootsOf(tc.roots)
			}
			s, err := Solve(p)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, summary(s)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	for _, tc := range []struct {
		name, table, roots, want string
		problem                  Problem
	}{
		{"two roots", "a v1.0.0\na v2.0.0", "a <v2; a >=v2", "you request a <v2", Problem{}},
		{"two digests", "", "a " + digestA + "; a " + digestB, "a " + digestA, Problem{}},
		{"a digest and a version that nobody knows together", "a v1.0.0\na " + digestA, "a " + digestA +
			"; a v1.0.0", "No version of a satisfies every requirement", Problem{}},
		{"a repository that vanished", "a v1.0.0: b v1", "a", "whose repository does not exist", Problem{}},
		{"a version that vanished", "a v1.0.0: b v1.0.0@" + digestA, "a", "is not available", Problem{}},
		{"no such version", "a v1.0.0: b v3\nb v1.0.0\nb v2.0.0", "a", "b v3, which does not exist (versions: v1.0.0, v2.0.0)", Problem{}},
		{"what is there does not fit what is optional", "a v1.0.0: ?b v1\nb v1.0.0\nb v2.0.0", "a; b v2", "you request a, which works only with b v1", Problem{}},
		{"what is needed does not fit what is optional", "a v1.0.0: ?b v1; c\nc v1.0.0: b v2\nb v1.0.0\nb v2.0.0", "a", "a, which works only with b v1", Problem{}},
		{"what is optional for each version differs", "a v1.0.0: ?b v1\na v1.1.0: ?b v2\na v1.2.0: ?b v3\nb v1.0.0\nb v2.0.0\nb v3.0.0\nb v4.0.0", "a; b v4", "works only with b v1, v2 or v3", Problem{}},
		{"what is there does not fit somebody else", "a v1.0.0: b v2\nb v1.0.0\nb v2.0.0", "a; ?b v1", "provider/other works only with b v1", Problem{}},
		{"an optional version that does not exist", "a v1.0.0: ?b v9\nb v1.0.0", "a; b", "a, which works only with b v9", Problem{}},
		{"only with another version of itself", "a v1.0.0: ?a v2", "a", "a v1.0.0 works only with another version of itself", Problem{}},
		{"another version of itself", "a v1.0.0: a v2", "a", "another version of itself", Problem{}},
		{"downgrades are not allowed", "r v1.0.0: a <v1.1.0\na v1.0.0\na v1.2.0", "r", "a v1.2.0 is installed and must not be downgraded", Problem{
			Installed: map[string]string{"a": "v1.2.0"}, Moves: Upward,
		}},
		{"changes are not allowed", "r v1.0.0: a >=v1.1.0\na v1.0.0\na v1.2.0", "r", "a v1.0.0 is installed and must not change", Problem{
			Installed: map[string]string{"a": "v1.0.0"}, Moves: Never,
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := tc.problem
			p.Roots, p.Source = rootsOf(tc.roots), parseTable(tc.table)
			_, err := Solve(p)
			var c *Conflict
			if !errors.Is(err, ErrUnsolvable) || !errors.As(err, &c) {
				t.Fatalf("got %v", err)
			}
			if !strings.Contains(c.Error(), tc.want) {
				t.Errorf("%q is not in\n%s", tc.want, c.Explanation)
			}
			if len(c.Explanation.Suggestions) == 0 {
				t.Error("nothing would help")
			}
			for _, e := range c.Explanation.Suggestions {
				if _, err := Solve(e.Apply(p)); err != nil {
					t.Errorf("%s does not help: %v", e, err)
				}
			}
		})
	}
}

// hardening: F1
func TestCycles(t *testing.T) {
	for name, tc := range map[string]struct{ table, roots, want string }{
		"every version": {"a v1.0.0: b\na v1.1.0: b\nb v1.0.0: a", "a", "a v1.1.0 requires b v1.0.0 requires a v1.1.0"},
		"two":           {"a v1.0.0: b\nb v1.0.0: a", "a", "a v1.0.0 requires b v1.0.0 requires a v1.0.0"},
		"itself":        {"a v1.0.0: a v1", "a", "a v1.0.0 requires a v1.0.0"},
		"behind others": {
			"r v1.0.0: x; a\nx v1.0.0\na v1.0.0: b\nb v1.0.0: c\nc v1.0.0: x; b", "r",
			"b v1.0.0 requires c v1.0.0 requires b v1.0.0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Solve(Problem{Roots: rootsOf(tc.roots), Source: parseTable(tc.table)})
			var c *Cycle
			if !errors.Is(err, ErrCycle) || !errors.As(err, &c) || c.Error() != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func TestFaultsOfTheSourceComeBack(t *testing.T) {
	down := errors.New("the registry is down")
	for _, at := range []string{"b", "b v1.0.0"} {
		table := parseTable("a v1.0.0: b\nb v1.0.0")
		table.fault = map[string]error{at: down}
		_, err := Solve(Problem{Roots: rootsOf("a"), Source: table})
		if !errors.Is(err, down) || !strings.Contains(err.Error(), "of b") {
			t.Errorf("%s: got %v", at, err)
		}
	}
}

// A package with only optional dependents is not looked up.
func TestOptionalPackagesAreNotLookedUp(t *testing.T) {
	table := parseTable("a v1.0.0: ?b v1; ?c " + digestA + "; d\nd v1.0.0")
	if _, err := Solve(Problem{Roots: rootsOf("a; ?e v1"), Source: table}); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"list a": 1, "list d": 1, "a v1.0.0": 1, "d v1.0.0": 1}
	if diff := cmp.Diff(want, table.asked); diff != "" {
		t.Error(diff)
	}
}

// Why a version was chosen, or not, names those who only work with it.
func TestOptionalReasons(t *testing.T) {
	s, err := Solve(Problem{
		Roots:  rootsOf("a; b v1; ?c <v2"),
		Source: parseTable("a v1.0.0: ?b <v2; c\na v1.1.0: ?b v2; c\nb v1.0.0\nc v1.0.0\nc v2.0.0"),
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range s.Picks {
		got = append(got, fmt.Sprintf("%s: %s; %v", p.Version(), strings.Join(p.Why, ", "), slices.Collect(p.SetAside)))
	}
	want := []string{
		"v1.0.0: you requested any version; [{v1.1.0 it works only with b v2, but v1.0.0 is selected}]",
		"v1.0.0: a v1.0.0 works only with b <v2, you requested v1; []",
		"v1.0.0: a v1.0.0 needs any version, provider/other works only with c <v2; [{v2.0.0 provider/other works only with c <v2}]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDigestsAreNotListed(t *testing.T) {
	table := parseTable("a " + digestA + ": b v1.0.0@" + digestB + "\nb v1.0.0@" + digestB)
	if _, err := Solve(Problem{Roots: rootsOf("a " + digestA), Source: table}); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"a " + digestA: 1, "b v1.0.0@" + digestB: 1}
	if diff := cmp.Diff(want, table.asked); diff != "" {
		t.Error(diff)
	}
}

func TestReasons(t *testing.T) {
	s, err := Solve(Problem{
		Roots: []dependency.Root{{Package: "a", Constraint: "<v3", By: "the platform"}, {Package: "b"}},
		Source: parseTable(
			"a v1.0.0: b v1\na v2.0.0: b v2\na v3.0.0\na v3\nb v1.0.0\nb v2.0.0: c >=v9\nb v2.1.0-rc.1\nb nightly\nc v1.0.0",
		),
	})
	if err != nil {
		t.Fatal(err)
	}
	type pick struct {
		Package, Tag string
		Why          []string
		Dependencies []dependency.Dependency
		SetAside     []SetAside
	}
	want := []pick{
		{Package: "a", Tag: "v1.0.0", Why: []string{
			"the platform requested <v3",
		}, Dependencies: []dependency.Dependency{{Package: "b", Constraint: "v1"}}, SetAside: []SetAside{
			{"v3.0.0", "the platform requested <v3"},
			{"v2.0.0", "it needs b v2, but v1.0.0 is selected"},
			{"v3", "it is a partial version, and moves"},
		}},
		{Package: "b", Tag: "v1.0.0", Why: []string{"a v1.0.0 needs v1", "you requested any version"}, SetAside: []SetAside{
			{"v2.1.0-rc.1", "a v1.0.0 needs v1, which accepts no prereleases"},
			{"v2.0.0", "a v1.0.0 needs v1"},
			{"nightly", "it is not a semantic version"},
		}},
	}
	var got []pick
	for _, p := range s.Picks {
		got = append(got, pick{p.Package, p.Tag, p.Why, p.Dependencies, slices.Collect(p.SetAside)})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The order of a source has no effect on the result, and the order of the request has
// an effect on the order of an explanation only.
func TestOrderHasNoEffect(t *testing.T) {
	for instance := range uint64(60) {
		table, roots := medium(instance)
		var first, firstText string
		for seed := range uint64(5) {
			random := rand.New(rand.NewPCG(seed, instance))
			solve := func(roots []dependency.Root) (string, string) {
				p := Problem{Roots: roots, Source: shuffled{table, random}, Installed: map[string]string{
					"p01": "v1.1.0", "p02": "v1.0.0", "p03": "v1.2.0",
				}}
				s, err := Solve(p)
				var c *Conflict
				if !errors.As(err, &c) {
					return fmt.Sprintf("%+v %v", s, err), ""
				}
				core := slices.SortedFunc(slices.Values(c.Explanation.Roots), sameOrder)
				return fmt.Sprintf("%+v and %d more", core, c.Explanation.Further), c.Explanation.String()
			}
			_, text := solve(roots)
			shuffledRoots := slices.Clone(roots)
			random.Shuffle(
				len(roots), func(i, j int) { shuffledRoots[i], shuffledRoots[j] = shuffledRoots[j], shuffledRoots[i] },
			)
			got, _ := solve(shuffledRoots)
			if first == "" {
				first, firstText = got, text
			}
			if got != first || text != firstText {
				t.Fatalf("instance %d: got\n%s\n%s\nand\n%s\n%s", instance, first, firstText, got, text)
			}
		}
	}
}

// shuffled is a table that answers in another order each time.
type shuffled struct {
	*table
	random *rand.Rand
}

func (s shuffled) Versions(pkg string) ([]string, error) {
	out := slices.Sorted(maps.Keys(s.packages[pkg]))
	s.random.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out, nil
}

func (s shuffled) Dependencies(pkg, version string) ([]dependency.Dependency, error) {
	deps, err := s.table.Dependencies(pkg, version)
	deps = slices.Clone(deps)
	s.random.Shuffle(len(deps), func(i, j int) { deps[i], deps[j] = deps[j], deps[i] })
	return deps, err
}

// Every pigeon of n+1 needs one of n holes of its own, which no search by
// resolution finds out in less than exponential time.
func pigeons(n int) (*table, []dependency.Root) {
	t := newTable()
	for hole := range n {
		for pigeon := range n + 1 {
			t.add(fmt.Sprintf("hole%d", hole), fmt.Sprintf("v%d.0.0", pigeon))
		}
	}
	var roots []dependency.Root
	for pigeon := range n + 1 {
		name := fmt.Sprintf("pigeon%d", pigeon)
		for hole := range n {
			t.add(name, fmt.Sprintf("v%d.0.0", hole), dependency.Dependency{
				Package: fmt.Sprintf("hole%d", hole), Constraint: fmt.Sprintf("v%d.0.0", pigeon),
			})
		}
		roots = append(roots, dependency.Root{Package: name})
	}
	return t, roots
}

func TestBudget(t *testing.T) {
	table, roots := pigeons(14)
	_, err := Solve(Problem{Roots: roots, Source: table, Budget: 200_000})
	var e *Exhausted
	if !errors.Is(err, ErrBudget) || !errors.As(err, &e) || len(e.Packages) != 5 || e.Steps < 200_000 {
		t.Fatalf("got %v", err)
	}
	_, again := Solve(Problem{Roots: roots, Source: table, Budget: 200_000})
	if again == nil || again.Error() != err.Error() {
		t.Errorf("got %v and %v", err, again)
	}
}
