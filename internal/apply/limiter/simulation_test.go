package limiter

import (
	"math/rand/v2"
	"time"
)

// simulation is an API server that works on a fixed number of calls at full speed
// and shares that speed among more, and a client that keeps as many calls under
// way as the limit allows. Its clock is simulated.
type simulation struct {
	concurrency concurrency
	now         time.Time
	rng         *rand.Rand

	// capacity is how many calls the server works on at full speed.
	capacity float64
	// slowness is by how much everything takes longer.
	slowness float64
	// refuseAbove is from how many calls on the server throttles; zero is never.
	refuseAbove int
	// uneven makes calls differ in size, and in their cost for that size.
	uneven bool

	inFlight  []*simulated
	answered  int
	throttled int
}

type simulated struct {
	result Result
	began  time.Time
	left   time.Duration
}

func newSimulation(seed uint64, capacity float64) *simulation {
	return &simulation{
		concurrency: newConcurrency(), now: time.Unix(0, 0), rng: rand.New(rand.NewPCG(seed, 0)), capacity: capacity,
		slowness: 1,
	}
}

// run continues until a number of further calls is answered.
func (s *simulation) run(calls int) {
	for end := s.answered + calls; s.answered < end; {
		s.fill()
		s.finish()
	}
}

// fill starts calls up to the limit. The server throttles the calls above its own limit.
func (s *simulation) fill() {
	if s.now.Before(s.concurrency.pausedUntil) && len(s.inFlight) == 0 {
		s.now = s.concurrency.pausedUntil
	}
	for !s.now.Before(s.concurrency.pausedUntil) && len(s.inFlight) < s.concurrency.limit {
		c := s.call()
		c.result.saturated = len(s.inFlight)+1 == s.concurrency.limit
		s.inFlight = append(s.inFlight, c)
	}
	if s.refuseAbove == 0 || len(s.inFlight) <= s.refuseAbove {
		return
	}
	refused := s.inFlight[s.refuseAbove:]
	s.inFlight = s.inFlight[:s.refuseAbove:s.refuseAbove]
	for _, c := range refused {
		s.throttled++
		c.result.Throttled, c.result.Failed = true, true
		s.concurrency.record(s.now, c.result)
	}
}

// usual is the cost of a CRD of usual size.
const (
	usualSize = 27 << 10
	usualCost = 40 * time.Millisecond
)

func (s *simulation) call() *simulated {
	size, luck := usualSize, 1.0
	if s.uneven {
		size, luck = 1<<10+int(s.rng.ExpFloat64()*usualSize), 0.7+0.6*s.rng.Float64()
	}
	c := &simulated{began: s.now, result: Result{Class: WriteObject, epoch: s.concurrency.epoch, Size: size}}
	usual := Result{Class: WriteObject, Size: usualSize}
	c.left = time.Duration(float64(usualCost) * s.slowness * luck * c.result.weight() / usual.weight())
	return c
}

// finish lets time pass until the next call is answered.
func (s *simulation) finish() {
	share := max(1, float64(len(s.inFlight))/s.capacity)
	next := 0
	for i, c := range s.inFlight {
		if c.left < s.inFlight[next].left {
			next = i
		}
	}
	done := s.inFlight[next]
	work := done.left
	for _, c := range s.inFlight {
		c.left -= work
	}
	s.now = s.now.Add(time.Duration(float64(work) * share))
	s.inFlight = append(s.inFlight[:next], s.inFlight[next+1:]...)
	done.result.Took = s.now.Sub(done.began)
	s.answered++
	s.concurrency.record(s.now, done.result)
}

// mean returns the mean limit over the next calls, and their total duration.
func (s *simulation) mean(calls int) (limit float64, took time.Duration) {
	began, sum := s.now, 0
	for range calls {
		s.run(1)
		sum += s.concurrency.limit
	}
	return float64(sum) / float64(calls), s.now.Sub(began)
}
