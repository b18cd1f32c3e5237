package lane_test

import (
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/lane"
)

type recorder struct {
	testing.TB
	skipped bool
}

func (r *recorder) Helper()              {}
func (r *recorder) Skipf(string, ...any) { r.skipped = true }

func TestExhaustiveTestsRunOnlyInTheFullLane(t *testing.T) {
	for value, skips := range map[string]bool{"": true, "full": false, "other": true} {
		t.Setenv(lane.Variable, value)
		r := &recorder{TB: t}
		if lane.Full(r, "internal/testing/lane.TestX"); r.skipped != skips {
			t.Errorf("with %q, skipped = %t, want %t", value, r.skipped, skips)
		}
	}
}
