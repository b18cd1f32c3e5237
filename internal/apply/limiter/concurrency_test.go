package limiter

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// learned is the number of results after which the limit has settled.
const learned = 2000

// Property: the limit settles at the capacity of the server or slightly above, so the server is busy and no call
// waits long.
func TestConcurrencySettlesNearTheCapacity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.IntRange(1, 40).Draw(t, "capacity")
		s := newSimulation(rapid.Uint64().Draw(t, "seed"), float64(capacity))
		s.uneven = rapid.Bool().Draw(t, "uneven")
		s.run(learned)
		limit, took := s.mean(learned)
		if low, high := 0.9*float64(min(capacity, MaxLimit)), 2*float64(capacity)+2; limit < low || limit > high {
			t.Errorf("the limit is %.1f, want it between %.1f and %.1f", limit, low, high)
		}
		// No server can do it faster than this.
		best := time.Duration(float64(learned) / float64(min(capacity, MaxLimit)) * float64(usualCost))
		if took > best*5/4 {
			t.Errorf("took %s, the server could have done it in %s", took, best)
		}
	})
}

// Property: a server that throttles calls above a limit rarely has to.
func TestConcurrencyStaysBelowTheThrottledLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSimulation(rapid.Uint64().Draw(t, "seed"), 100)
		s.uneven = rapid.Bool().Draw(t, "uneven")
		s.refuseAbove = rapid.IntRange(1, 31).Draw(t, "refuses above")
		// The limit is halved until it fits.
		s.run(2 * minWindow)
		if s.throttled > 2*startLimit {
			t.Errorf("%d calls throttled at the start", s.throttled)
		}
		for range 100 {
			before := s.throttled
			s.run(max(minWindow, s.concurrency.limit))
			if n := s.throttled - before; n > 2 {
				t.Fatalf("%d calls throttled in one window, at a limit of %d", n, s.concurrency.limit)
			}
		}
		began, before := s.now, s.throttled
		limit, _ := s.mean(learned)
		// A limit that was too much is tried again after a minute.
		if n, minutes := s.throttled-before, int(s.now.Sub(began)/ceilingLasts)+1; n > 3*minutes {
			t.Errorf("%d calls throttled within %d minutes", n, minutes)
		}
		if want := 0.6 * float64(s.refuseAbove); limit < want {
			t.Errorf("the limit is %.1f, want at least %.1f of the %d that the server takes", limit, want, s.refuseAbove)
		}
	})
}

// Property: the limit falls when calls take twice as long, and recovers afterwards.
func TestConcurrencyFallsUnderLoadAndRecovers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSimulation(rapid.Uint64().Draw(t, "seed"), float64(rapid.IntRange(4, 32).Draw(t, "capacity")))
		s.run(learned)
		before, _ := s.mean(500)
		s.slowness = rapid.Float64Range(2, 10).Draw(t, "slowness")
		lowest := before
		for range 10 * MaxLimit {
			s.run(1)
			lowest = min(lowest, float64(s.concurrency.limit))
		}
		if lowest > 0.8*before {
			t.Errorf("the limit was %.1f and never below %.1f", before, lowest)
		}
		s.slowness = 1
		s.run(learned)
		if after, _ := s.mean(500); after < 0.8*before {
			t.Errorf("the limit was %.1f and is %.1f again", before, after)
		}
	})
}

// Property: after any results, the limit and the pause are within their bounds, and reads are admitted.
func TestConcurrencyStaysWithinItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, now := newConcurrency(), time.Unix(0, 0)
		for range rapid.IntRange(1, 500).Draw(t, "answers") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "passes")))
			p.record(now, Result{
				Class:     rapid.SampledFrom([]Class{WriteObject, WriteMetadata, Read}).Draw(t, "sort"),
				epoch:     p.epoch - rapid.IntRange(0, 1).Draw(t, "late"),
				saturated: rapid.Bool().Draw(t, "saturated"), Size: rapid.IntRange(0, 3<<20).Draw(t, "size"),
				Took: time.Duration(rapid.Int64Range(0, int64(2*MaxPause)).Draw(t, "took")), Failed: rapid.Bool().Draw(t, "failed"),
				Throttled: rapid.IntRange(0, 9).Draw(t, "throttled") == 0,
				After:     time.Duration(rapid.Int64Range(-1, int64(time.Hour)).Draw(t, "after")),
			})
			if p.limit < minLimit || p.limit > MaxLimit {
				t.Fatalf("the limit is %d", p.limit)
			}
			if pause := p.pausedUntil.Sub(now); pause > MaxPause {
				t.Fatalf("a pause of %s", pause)
			}
			if writes, reads := p.limits(); writes != p.limit || reads < 2 {
				t.Fatalf("limits of %d writes and %d reads at a limit of %d", writes, reads, p.limit)
			}
		}
	})
}

func TestConcurrencyFollowsResults(t *testing.T) {
	good := Result{Class: WriteObject, saturated: true, Size: usualSize, Took: usualCost}
	with := func(change func(*Result)) Result {
		a := good
		change(&a)
		return a
	}
	tests := map[string]struct {
		results []Result
		want    int
	}{
		"start":                                   {nil, 10},
		"a window that is not full":               {times(9, good), 10},
		"a full window of good results":           {times(10, good), 11},
		"no call waited":                          {times(10, with(func(a *Result) { a.saturated = false })), 10},
		"results of calls before the last change": {times(10, with(func(a *Result) { a.epoch = -1 })), 10},
		"reads do not count":                      {times(100, with(func(a *Result) { a.Class = Read })), 10},
		"one failed":                              {append(times(9, good), with(func(a *Result) { a.Failed = true })), 10},
		"one throttled":                           {times(1, with(func(a *Result) { a.Throttled = true })), 5},
		"a read throttled":                        {times(1, with(func(a *Result) { a.Throttled, a.Class = true, Read })), 5},
		"several throttled at once":               {times(4, with(func(a *Result) { a.Throttled = true })), 5},
		"costs are relative to the size": {
			append(times(9, good), with(func(a *Result) { a.Size, a.Took = 20*usualSize, 19*usualCost })), 11,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := newConcurrency()
			for _, a := range tc.results {
				p.record(time.Unix(0, 0), a)
			}
			if p.limit != tc.want {
				t.Errorf("the limit is %d, want %d", p.limit, tc.want)
			}
		})
	}
}

func times(n int, a Result) []Result {
	out := make([]Result, n)
	for i := range out {
		out[i] = a
	}
	return out
}

// A patch is compared with other patches only: it is small, but costs as much as
// the object that it changes.
func TestConcurrencyComparesCallsOfOneClass(t *testing.T) {
	p := newConcurrency()
	object := Result{Class: WriteObject, saturated: true, Size: 1 << 20, Took: 40 * time.Millisecond}
	patch := Result{Class: WriteMetadata, saturated: true, Size: 200, Took: 40 * time.Millisecond}
	for range 100 {
		object.epoch, patch.epoch = p.epoch, p.epoch
		p.record(time.Unix(0, 0), object)
		p.record(time.Unix(0, 0), patch)
	}
	if p.limit <= startLimit {
		t.Errorf("the limit is %d, want an increase: no call became slower", p.limit)
	}
}
