package revision_test

import (
	"testing"

	"github.com/xpkg-dev/xpkg/internal/revision"
)

// An answer is read as it is written, and nothing else is an answer.
func TestAnswersToDeletions(t *testing.T) {
	for text, want := range map[string]revision.OnDelete{
		"": {}, " ": {}, "orphan": {Orphan: true}, " orphan\n": {Orphan: true}, "cascade=0": {Cascade: true},
		"cascade=412": {Cascade: true, AtMost: 412},
	} {
		var got revision.OnDelete
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
		var again revision.OnDelete
		if err := again.UnmarshalText([]byte(got.String())); err != nil || again != got {
			t.Errorf("%q is written as %q", text, got)
		}
	}
	for _, text := range []string{"yes", "Orphan", "cascade", "cascade=", "cascade=-1", "cascade=1.5", "cascade=all", "cascade=9999999999999999999"} {
		got := revision.OnDelete{Orphan: true}
		if err := got.UnmarshalText([]byte(text)); err == nil || got != (revision.OnDelete{}) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, tc := range []struct {
		answer revision.OnDelete
		count  int64
		want   bool
	}{
		{revision.OnDelete{}, 0, true}, {revision.OnDelete{}, 1, false}, {revision.OnDelete{Orphan: true}, 1, false},
		{revision.OnDelete{Cascade: true}, 1, false}, {revision.OnDelete{Cascade: true, AtMost: 2}, 2, true},
		{revision.OnDelete{Cascade: true, AtMost: 2}, 3, false},
	} {
		if got := tc.answer.Permits(tc.count); got != tc.want {
			t.Errorf("%+v permits %d: %t", tc.answer, tc.count, got)
		}
	}
}
