package solver

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares a text with a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}

// explained solves a problem that has no solution, and tries what would help.
func explained(t *testing.T, p Problem) string {
	t.Helper()
	_, err := Solve(p)
	var c *Conflict
	if !errors.As(err, &c) {
		t.Fatalf("%v: got %v", p.Roots, err)
	}
	if len(c.Explanation.Suggestions) == 0 {
		t.Errorf("%v: there are no suggestions", p.Roots)
	}
	for _, e := range c.Explanation.Suggestions {
		if _, err := Solve(e.Apply(p)); err != nil {
			t.Errorf("%v: %s does not help: %v", p.Roots, e, err)
		}
	}
	return c.Explanation.String()
}

// refusedByCorpus returns the roots and pairs of the corpus that have no solution.
func refusedByCorpus(t *testing.T, source *table) []Problem {
	t.Helper()
	var o outcomes
	readJSON(t, "outcomes.json", &o)
	var out []Problem
	try := func(roots ...dependency.Root) {
		p := Problem{Roots: roots, Source: source}
		if _, err := Solve(p); errors.Is(err, ErrUnsolvable) {
			out = append(out, p)
		}
	}
	for _, r := range o.Roots {
		try(corpusRoot(r.Root + "@" + r.Version))
	}
	for _, pair := range o.Pairs {
		a, b := corpusRoot(pair.Roots[0]), corpusRoot(pair.Roots[1])
		a.By, b.By = "team A", "team B"
		try(a, b)
	}
	return out
}

func TestExplanationsOfTheCorpus(t *testing.T) {
	if testing.Short() {
		t.Skip("solves hundreds of problems")
	}
	var b strings.Builder
	for i, p := range refusedByCorpus(t, readGraph(t)) {
		text := explained(t, p)
		if i%4 == 0 {
			fmt.Fprintf(&b, "# %d\n%s\n", i, text)
		}
	}
	golden(t, "corpus.golden", b.String())
}

// hardening: F2
func TestExplanations(t *testing.T) {
	var b strings.Builder
	for _, tc := range []struct {
		table, roots string
		problem      Problem
	}{
		{table: "icons v1.0.0\nicons v2.0.0\nmenu v1.0.0: dropdown >=v2\nmenu v1.1.0: dropdown >=v2\ndropdown v2.0.0: icons v2\ndropdown v2.1.0: icons v2\ndropdown v1.0.0\nintl v3.0.0", roots: "menu; icons v1; intl"},
		{table: "foo v1.0.0: a v1; b v1\nfoo v1.1.0: x v1; y v1\na v1.0.0: b v2\nb v1.0.0\nb v2.0.0\nx v1.0.0: y v2\ny v1.0.0\ny v2.0.0", roots: "foo"},
		{table: "a v1.0.0: b v1.0.0\na v1.1.0: b v1.1.0\na v1.2.0: b v1.2.0\na v1.3.0: b v1.3.0\nb v1.0.0\nb v1.1.0\nb v1.2.0\nb v1.3.0\nb v2.0.0", roots: "a; b v2"},
		{table: "a v1.0.0: gone v1", roots: "a"},
		{table: "a v1.0.0: gone v0", roots: "a"},
		{table: "a v1.0.0: gone v0.0", roots: "a"},
		{table: "r v1.0.0: a <v1.1.0\na v1.0.0\na v1.2.0", roots: "r", problem: Problem{
			Installed: map[string]string{"a": "v1.2.0"}, Moves: Upward,
		}},
		{table: "p v1.0.0\np v1.1.0-rc.1", roots: "p >v1.0.0"},
		{table: "a v1.0.0: p >=v1.0.0\np v1.0.0-rc.1", roots: "a"},
		{table: "a v1.0.0: p >=v1.0.0\np latest\np v1", roots: "a"},
		{table: "a v1.0.0\nb v1.0.0\nc v1.0.0\nc v2.0.0", roots: "a >=v3; b >=v9; c v1"},
		{table: "a v1.0.0\nb v1.0.0\nx v1.0.0: c v1\ny v1.0.0: c v2\nc v1.0.0\nc v2.0.0", roots: "a >=v3; b >=v9; x; y"},
		{table: "a v1.0.0\nb v1.0.0: a >=v1", roots: "a sha256:" + strings.Repeat("0", 64) + "; b"},
		{table: "a v1.0.0: ?b <v2\na v1.1.0: ?b <v2\nb v1.0.0\nb v2.0.0", roots: "a; b v2"},
		{table: "top v1.0.0: a; b v2\na v1.0.0: ?b v1\na v1.1.0: ?b <v2\nb v1.0.0\nb v2.0.0\nb v2.1.0", roots: "top"},
		{table: "top v1.0.0: b v2\nb v1.0.0\nb v2.0.0\nb v2.1.0", roots: "top; ?b <v2"},
	} {
		p := tc.problem
		p.Roots, p.Source = rootsOf(tc.roots), parseTable(tc.table)
		fmt.Fprintf(&b, "# %s\n%s\n", tc.roots, explained(t, p))
	}
	golden(t, "explanations.golden", b.String())
}
