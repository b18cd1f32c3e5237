package apply

import "time"

const (
	// startLimit is how many writes may be under way at once before anything is
	// known about the server.
	startLimit = 10
	// minLimit and maxLimit bound the limit. More concurrent calls do not help: the API server processes CRDs one after
	// the other.
	minLimit, maxLimit = 1, 32

	// good and slow compare the cost of calls with the lowest recent cost. A window with a cost of up to good times the
	// lowest raises the limit; one above slow times lowers it. In between, the limit stays: costs of calls to one server
	// vary by that much.
	good, slow = 1.5, 1.8
	// dipEvery is after how many windows the limit is halved for one window. A
	// server that is busy with our own calls answers each of them late; only with
	// fewer of them it shows how fast it could be.
	dipEvery = 20
	// minWindow is the minimum number of responses in a window.
	minWindow = 5

	// defaultPause is the pause of new calls when a throttling server states no delay. MaxPause bounds the delay that it
	// states.
	defaultPause, maxPause = time.Second, 30 * time.Second
	// ceilingLasts is for how long a limit that was too much is not tried again.
	ceilingLasts = time.Minute
)

// callSort is a sort of call. The costs of calls of one sort can be compared.
type callSort int

const (
	// writeObject is the write of a whole object, which costs the more the larger it is.
	writeObject callSort = iota
	// writeMetadata is a write of metadata, which costs as much as a write of the object.
	writeMetadata
	// readAny is a read. Reads are few and differ too much to be compared.
	readAny
	// sorts is how many sorts there are.
	sorts
)

// answer is the result of one call for the limit.
type answer struct {
	sort callSort
	// epoch is the epoch of the limit when the call started.
	epoch int
	// crowded reports whether the limit delayed other calls during this one.
	crowded bool
	// size is how many bytes were sent.
	size int
	took time.Duration
	// failed reports whether the call was not carried out, or its result is unknown.
	failed bool
	// throttled reports whether the server asked for fewer requests, and the delay before the next one; zero if it stated
	// none.
	throttled bool
	after     time.Duration
}

// weight is the work that a call makes, in bytes. A call without a body is work,
// too.
func (a answer) weight() float64 {
	const call = 4096
	if a.sort == writeObject {
		return float64(call + a.size)
	}
	return call
}

// pace computes the limit of concurrent writes from the results of earlier ones. It is pure: the time is an input. It
// is not safe for concurrent use.
//
// The limit grows by one while calls cost about the lowest cost, shrinks slowly while they cost more, and is halved
// when the server throttles. The lowest cost is measured again at intervals, with half the limit.
type pace struct {
	limit int
	// epoch counts the changes of the limit. The result of a call that started before the last change does not affect
	// the limit.
	epoch       int
	pausedUntil time.Time
	// ceiling bounds the limit until the next measurement.
	ceiling      int
	ceilingUntil time.Time

	window  window
	windows int
	// best is the lowest cost seen lately, in seconds for a byte of weight.
	best [sorts]float64
	// dippedFrom is the limit to go back to when the window ends, or zero.
	dippedFrom int
}

// window sums up the answers since the last decision.
type window struct {
	answers         int
	crowded, failed bool
	seconds, weight [sorts]float64
}

func newPace() pace { return pace{limit: startLimit, ceiling: maxLimit} }

// rooms are how many writes and how many reads may be under way at once. Reads
// have room of their own, so that they never wait for writes.
func (p *pace) rooms() (writes, reads int) { return p.limit, max(2, p.limit/2) }

// answered records the result of a call.
func (p *pace) answered(now time.Time, a answer) {
	switch {
	case a.throttled:
		p.throttle(now, a)
	case a.sort == readAny || a.epoch != p.epoch:
	default:
		p.window.add(a)
		if p.window.answers >= max(minWindow, p.limit) {
			p.decide(now)
		}
	}
}

// throttle pauses new calls. When one call is too many, others that are under way
// are often refused with it; together they halve the limit only once.
func (p *pace) throttle(now time.Time, a answer) {
	after := a.after
	if after <= 0 {
		after = defaultPause
	}
	if until := now.Add(min(after, maxPause)); until.After(p.pausedUntil) {
		p.pausedUntil = until
	}
	if a.epoch != p.epoch {
		return
	}
	p.ceiling, p.ceilingUntil = max(minLimit, p.limit-1), now.Add(ceilingLasts)
	p.dippedFrom = 0
	p.set(p.limit / 2)
}

// decide ends a window.
func (p *pace) decide(now time.Time) {
	w := p.window
	p.window = window{}
	p.windows++
	switch {
	case p.dippedFrom > 0:
		p.remember(w, true)
		p.set(p.dippedFrom)
		p.dippedFrom = 0
		return
	case p.windows >= dipEvery:
		p.windows, p.dippedFrom = 0, p.limit
		p.set(p.limit / 2)
		return
	}
	ratio := p.ratio(w)
	p.remember(w, false)
	switch {
	case ratio > slow:
		p.set(p.limit - max(1, p.limit/8))
	case ratio <= good && w.crowded && !w.failed:
		p.raise(now)
	}
}

func (p *pace) raise(now time.Time) {
	top := maxLimit
	if now.Before(p.ceilingUntil) {
		top = p.ceiling
	}
	p.set(max(p.limit, min(p.limit+1, top)))
}

func (p *pace) set(limit int) {
	limit = min(max(limit, minLimit), maxLimit)
	if limit != p.limit {
		p.limit, p.window = limit, window{}
		p.epoch++
	}
}

func (w *window) add(a answer) {
	w.answers++
	w.crowded = w.crowded || a.crowded
	w.failed = w.failed || a.failed
	w.seconds[a.sort] += a.took.Seconds()
	w.weight[a.sort] += a.weight()
}

// ratio returns the cost of the calls in a window relative to the lowest cost.
func (p *pace) ratio(w window) float64 {
	var seconds, best float64
	for s, weight := range w.weight {
		if p.best[s] > 0 {
			seconds += w.seconds[s]
			best += weight * p.best[s]
		}
	}
	if best == 0 {
		return 1
	}
	return seconds / best
}

// remember replaces the lowest costs by the costs of a window where they are lower, or where former costs have
// expired. Failed calls can be cheap and are ignored.
func (p *pace) remember(w window, anew bool) {
	if w.failed {
		return
	}
	for s, weight := range w.weight {
		if weight == 0 {
			continue
		}
		if cost := w.seconds[s] / weight; anew || p.best[s] == 0 || cost < p.best[s] {
			p.best[s] = cost
		}
	}
}
