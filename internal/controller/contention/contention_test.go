package contention_test

import (
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/controller/contention"
)

var limits = contention.Limits{Writes: 3, Window: 10 * time.Minute}

// start is any time.
var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func TestDecide(t *testing.T) {
	const s, m = time.Second, time.Minute
	cases := map[string]struct {
		changes []time.Duration // since start
		writes  string          // w for a write, - for none
	}{
		"a few changes are restored": {[]time.Duration{0, s, 2 * s}, "www"},
		"a client that does not stop is left alone": {
			[]time.Duration{0, s, 2 * s, 3 * s, 4 * s, 5 * m}, "www---",
		},
		"rare changes are always restored": {
			[]time.Duration{0, 11 * m, 22 * m, 33 * m, 44 * m, 55 * m}, "wwwwww",
		},
		"one attempt in each window": {
			[]time.Duration{0, s, 2 * s, 3 * s, 11 * m, 12 * m, 22 * m, 23 * m, 33 * m, 34 * m}, "www-w-w-w-",
		},
		"an attempt that lasts ends the contention": {
			[]time.Duration{0, s, 2 * s, 3 * s, 11 * m, 22 * m, 22*m + s, 22*m + 2*s, 22*m + 3*s}, "www-wwww-",
		},
		"changes at a rate below the limit do not stop a manager": {
			[]time.Duration{0, 4 * m, 8 * m, 12 * m, 16 * m, 20 * m}, "wwwwww",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var h contention.History
			got := ""
			for _, at := range tc.changes {
				var d contention.Decision
				h, d = limits.Decide(h, start.Add(at))
				if d.Write {
					got += "w"
					continue
				}
				got += "-"
				if !d.RetryAt.After(start.Add(at)) || d.RetryAt.After(start.Add(at+limits.Window)) || d.Writes == 0 ||
					d.Since.IsZero() {
					t.Errorf("at %s: %+v", at, d)
				}
			}
			if got != tc.writes {
				t.Errorf("got %s, want %s", got, tc.writes)
			}
		})
	}
}
