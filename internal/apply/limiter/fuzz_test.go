package limiter

import (
	"math"
	"testing"
	"time"
)

// For any pause that a server states, the pause of new calls stays within its bounds.
func FuzzPause(f *testing.F) {
	for _, seed := range []int64{0, -1, 1, int64(time.Second), int64(time.Hour), math.MaxInt64, math.MinInt64} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, after int64) {
		now := time.Unix(1_000_000, 0)
		c := newConcurrency()
		c.record(now, Result{Throttled: true, After: time.Duration(after)})
		if pause := c.pausedUntil.Sub(now); pause <= 0 || pause > MaxPause {
			t.Errorf("%s: a pause of %s", time.Duration(after), pause)
		}
	})
}
