package apply

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// learned is how many answers are enough for the pace to know a server.
const learned = 2000

// Property: the limit settles where the server is busy and no call waits long: at
// its capacity or somewhat above, whatever that is.
func TestPaceSettlesNearTheCapacity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.IntRange(1, 40).Draw(t, "capacity")
		s := newSimulation(rapid.Uint64().Draw(t, "seed"), float64(capacity))
		s.uneven = rapid.Bool().Draw(t, "uneven")
		s.run(learned)
		limit, took := s.mean(learned)
		if low, high := 0.9*float64(min(capacity, maxLimit)), 2*float64(capacity)+1; limit < low || limit > high {
			t.Errorf("the limit is %.1f, want it between %.1f and %.1f", limit, low, high)
		}
		// No server can do it faster than this.
		best := time.Duration(float64(learned) / float64(min(capacity, maxLimit)) * float64(usualCost))
		if took > best*5/4 {
			t.Errorf("took %s, the server could have done it in %s", took, best)
		}
	})
}

// Property: a server that throttles is asked too much only now and then.
func TestPaceKeepsBelowWhatIsThrottled(t *testing.T) {
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
			s.run(max(minWindow, s.pace.limit))
			if n := s.throttled - before; n > 2 {
				t.Fatalf("%d calls throttled in one window, at a limit of %d", n, s.pace.limit)
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

// Property: when everything takes twice as long, fewer calls are made at once, and
// as many as before when it is over.
func TestPaceBacksOffAndRecovers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSimulation(rapid.Uint64().Draw(t, "seed"), float64(rapid.IntRange(4, 32).Draw(t, "capacity")))
		s.run(learned)
		before, _ := s.mean(500)
		s.slowness = rapid.Float64Range(2, 10).Draw(t, "slowness")
		lowest := before
		for range 10 * maxLimit {
			s.run(1)
			lowest = min(lowest, float64(s.pace.limit))
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

// Property: whatever the answers are, the limit keeps within its bounds, a pause
// within its own, and reads always have room.
func TestPaceKeepsItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, now := newPace(), time.Unix(0, 0)
		for range rapid.IntRange(1, 500).Draw(t, "answers") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "passes")))
			p.answered(now, answer{
				sort: rapid.SampledFrom([]callSort{writeObject, writeMetadata, readAny}).Draw(t, "sort"), epoch: p.epoch - rapid.IntRange(0, 1).Draw(t, "late"),
				crowded: rapid.Bool().Draw(t, "crowded"), size: rapid.IntRange(0, 3<<20).Draw(t, "size"),
				took: time.Duration(rapid.Int64Range(0, int64(requestTimeout)).Draw(t, "took")), failed: rapid.Bool().Draw(t, "failed"),
				throttled: rapid.IntRange(0, 9).Draw(t, "throttled") == 0, after: time.Duration(rapid.Int64Range(-1, int64(time.Hour)).Draw(t, "after")),
			})
			if p.limit < minLimit || p.limit > maxLimit {
				t.Fatalf("the limit is %d", p.limit)
			}
			if pause := p.pausedUntil.Sub(now); pause > maxPause {
				t.Fatalf("a pause of %s", pause)
			}
			if writes, reads := p.rooms(); writes != p.limit || reads < 2 {
				t.Fatalf("room for %d writes and %d reads at a limit of %d", writes, reads, p.limit)
			}
		}
	})
}

// hardening: I-11
func TestPace(t *testing.T) {
	good := answer{sort: writeObject, crowded: true, size: usualSize, took: usualCost}
	with := func(change func(*answer)) answer {
		a := good
		change(&a)
		return a
	}
	tests := map[string]struct {
		answers []answer
		want    int
	}{
		"it starts with ten":                 {nil, 10},
		"a window that is not full":          {times(9, good), 10},
		"a full window of good answers":      {times(10, good), 11},
		"nobody waited":                      {times(10, with(func(a *answer) { a.crowded = false })), 10},
		"answers to calls from before":       {times(10, with(func(a *answer) { a.epoch = -1 })), 10},
		"reads say nothing":                  {times(100, with(func(a *answer) { a.sort = readAny })), 10},
		"one failed":                         {append(times(9, good), with(func(a *answer) { a.failed = true })), 10},
		"one throttled":                      {times(1, with(func(a *answer) { a.throttled = true })), 5},
		"a read throttled":                   {times(1, with(func(a *answer) { a.throttled, a.sort = true, readAny })), 5},
		"several throttled at once":          {times(4, with(func(a *answer) { a.throttled = true })), 5},
		"costs for the size are what counts": {append(times(9, good), with(func(a *answer) { a.size, a.took = 20*usualSize, 19*usualCost })), 11},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPace()
			for _, a := range tc.answers {
				p.answered(time.Unix(0, 0), a)
			}
			if p.limit != tc.want {
				t.Errorf("the limit is %d, want %d", p.limit, tc.want)
			}
		})
	}
}

func times(n int, a answer) []answer {
	out := make([]answer, n)
	for i := range out {
		out[i] = a
	}
	return out
}

// A patch is compared with other patches only: it is small, but costs as much as
// the object that it changes.
func TestPaceComparesLikeWithLike(t *testing.T) {
	p := newPace()
	object := answer{sort: writeObject, crowded: true, size: 1 << 20, took: 40 * time.Millisecond}
	patch := answer{sort: writeMetadata, crowded: true, size: 200, took: 40 * time.Millisecond}
	for range 100 {
		object.epoch, patch.epoch = p.epoch, p.epoch
		p.answered(time.Unix(0, 0), object)
		p.answered(time.Unix(0, 0), patch)
	}
	if p.limit <= startLimit {
		t.Errorf("the limit is %d, though nothing became slower", p.limit)
	}
}
