package view

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Findings with one cause are one message that names all subjects, and its remedy concerns all of them.
func TestOneCauseIsOneMessage(t *testing.T) {
	for name, tc := range map[string]struct {
		all  []Finding
		want []Cause
	}{
		"none": {nil, nil},
		"one":  {[]Finding{{Text: "a is old."}}, []Cause{{[]int{0}, "a is old.", ""}}},
		"notes that differ in a name": {
			[]Finding{{Text: "a is old."}, {Text: "b is new."}, {Text: "c is old."}, {Text: "d is old."}, {Text: "a is old."}},
			[]Cause{{[]int{0, 2, 3, 4}, "a is old (also c, d).", ""}, {[]int{1}, "b is new.", ""}},
		},
		"many": {
			[]Finding{{Text: "x: a"}, {Text: "x: b"}, {Text: "x: c"}, {Text: "x: d"}, {Text: "x: e"}},
			[]Cause{{[]int{0, 1, 2, 3, 4}, "x: a (also b, c and 2 more)", ""}},
		},
		"a name that occurs twice": {
			[]Finding{{Text: "r/a comes from m/a"}, {Text: "r/b comes from m/b"}, {Text: "r/c comes from m/b"}},
			[]Cause{{[]int{0, 1}, "r/a comes from m/a (also r/b)", ""}, {[]int{2}, "r/c comes from m/b", ""}},
		},
		"two differences": {
			[]Finding{{Text: "a stays at v1"}, {Text: "b stays at v2"}},
			[]Cause{{[]int{0}, "a stays at v1", ""}, {[]int{1}, "b stays at v2", ""}},
		},
		"another place of the name": {
			[]Finding{{Text: "a needs b"}, {Text: "c needs b"}, {Text: "a needs d"}},
			[]Cause{{[]int{0, 1}, "a needs b (also c)", ""}, {[]int{2}, "a needs d", ""}},
		},
		"remedies": {
			[]Finding{
				{Subject: "provider/a", Text: "provider/a is paused", Fix: "Run `resume provider a`, see `describe provider/a`."},
				{Subject: "provider/b", Text: "provider/b is paused", Fix: "Run `resume provider b`, see `describe provider/b`."},
				{Subject: "function/b", Text: "function/b is paused", Fix: "Run `resume function b`, see `describe function/b`."},
			},
			[]Cause{
				{[]int{
					0, 1,
				}, "provider/a is paused (also provider/b)", "Run `resume provider a b`, see `describe provider/a provider/b`."},
				{[]int{2}, "function/b is paused", "Run `resume function b`, see `describe function/b`."},
			},
		},
		"a common cause": {
			[]Finding{
				{Subject: "a", Cause: "x", Text: "a lacks get", Fix: "Grant it."},
				{Subject: "b", Cause: "x", Text: "b lacks list", Fix: "Grant it."},
				{Subject: "c", Cause: "y", Text: "c lacks get", Fix: "Grant it."},
			},
			[]Cause{{[]int{0, 1}, "a lacks get (for similar reasons also b)", "Grant it."}, {
				[]int{2}, "c lacks get", "Grant it.",
			}},
		},
		"different remedies": {
			[]Finding{{Subject: "a", Cause: "x", Text: "a", Fix: "One."}, {Subject: "b", Cause: "x", Text: "b", Fix: "Two."}},
			[]Cause{{[]int{0, 1}, "a (also b)", "One.\nTwo."}},
		},
	} {
		if diff := cmp.Diff(tc.want, ByCause(tc.all, 2)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	var out strings.Builder
	if Notes(
		&out, "a is old", "b is old", "c is old", "d is old", "e is old", "f is old",
	); out.String() != "note: a is old (also b, c, d, e, f)\n" {
		t.Errorf("outside of a terminal: %s", &out)
	}
}
