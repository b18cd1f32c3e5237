package solver

import (
	"slices"
	"strings"
	"testing"
)

// Long lines are continued in more deeply indented ones, and lose no word.
func TestLongLinesContinue(t *testing.T) {
	name := func(c string, n int) string { return strings.Repeat(c, n) }
	for _, tc := range []struct {
		line string
		want []string
	}{
		{"", []string{""}},
		{"  " + name("a", 198), []string{"  " + name("a", 198)}},
		{"  " + name("a", 300), []string{"  " + name("a", 300)}},
		{"- remove " + name("a", 250), []string{"- remove", "    " + name("a", 250)}},
		{"  " + name("a", 90) + " v1.0.0 requires " + name("b", 90) + " v1.0.0, v1.1.0 or v2.0.0", []string{
			"  " + name("a", 90) + " v1.0.0", "    requires " + name("b", 90) + " v1.0.0, v1.1.0 or v2.0.0",
		}},
		{"- remove " + name("a", 90) + " v1, " + name("b", 90) + " v2 and " + name("c", 90) +
			" v3", []string{"- remove " + name("a", 90) + " v1,", "    " + name("b", 90) + " v2 and " + name("c", 90) + " v3"}},
		{"2 further conflicts: between " + name("a", 90) + " and b; between " + name("c", 90) + " and d", []string{
			"2 further conflicts: between " + name("a", 90) + " and b;", "    between " + name("c", 90) + " and d",
		}},
	} {
		got := wrap(tc.line)
		if !slices.Equal(got, tc.want) {
			t.Errorf("%q is wrapped into %q, want %q", tc.line, got, tc.want)
		}
		if !slices.Equal(strings.Fields(strings.Join(got, "\n")), strings.Fields(tc.line)) {
			t.Errorf("%q lost words: %q", tc.line, got)
		}
	}
}
