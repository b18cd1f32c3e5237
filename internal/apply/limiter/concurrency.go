package limiter

import "time"

const (
	// startLimit is the limit before the first result.
	startLimit = 10
	// MaxLimit and minLimit bound the limit. More concurrent calls do not help: the API server processes CRDs one after
	// the other.
	MaxLimit, minLimit = 32, 1

	// good and slow compare the cost of calls with the lowest recent cost. A window with a cost of up to good
	// times the lowest raises the limit; one above slow times lowers it. In between, the limit does not
	// change, because the costs of calls to a server vary by that much.
	good, slow = 1.5, 1.8
	// probeEvery is the number of windows after which the limit is halved for one window. A server that is
	// busy with these calls responds late, so the lowest cost can only be measured with fewer calls.
	probeEvery = 20
	// minWindow is the minimum number of responses in a window.
	minWindow = 5

	// MaxPause bounds the pause that a throttling server states; defaultPause is the pause if it states none.
	MaxPause, defaultPause = 30 * time.Second, time.Second
	// ceilingLasts is the time before a limit that the server throttled is tried again.
	ceilingLasts = time.Minute
)

// Class is a class of calls with comparable costs.
type Class int

const (
	// WriteObject is a write of a whole object. Its cost grows with the size.
	WriteObject Class = iota
	// WriteMetadata is a write of metadata, which costs as much as a write of the object.
	WriteMetadata
	// Read is a read. Reads are few, and their costs differ too much to be compared.
	Read
	// classes is the number of classes.
	classes
)

// Result is the result of one call for the limit.
type Result struct {
	Class Class
	// epoch is the epoch of the limit when the call started.
	epoch int
	// saturated reports whether the limit delayed other calls during this one.
	saturated bool
	// Size is the number of bytes sent.
	Size int
	// Took is the time from the request to the response.
	Took time.Duration
	// Failed reports whether the call was not carried out, or its result is unknown.
	Failed bool
	// Throttled reports whether the server asked for fewer requests, and After is the delay before the next one; zero if
	// it stated none.
	Throttled bool
	After     time.Duration
}

// weight returns the work of a call in bytes. A call without a body has a weight, too.
func (a Result) weight() float64 {
	const call = 4096
	if a.Class == WriteObject {
		return float64(call + a.Size)
	}
	return call
}

// concurrency computes the limit of concurrent writes from the results of earlier ones. It is pure: the time
// is an input. It is not safe for concurrent use.
//
// The limit grows by one while calls cost about the lowest cost, shrinks slowly while they cost more, and is halved
// when the server throttles. The lowest cost is measured again at intervals, with half the limit.
type concurrency struct {
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
	// best is the lowest recent cost, in seconds per byte of weight.
	best [classes]float64
	// probedFrom is the limit to restore when the window ends, or zero.
	probedFrom int
}

// window is the sum of the results since the last decision.
type window struct {
	results           int
	saturated, failed bool
	seconds, weight   [classes]float64
}

func newConcurrency() concurrency { return concurrency{limit: startLimit, ceiling: MaxLimit} }

// limits returns the limits of concurrent writes and of concurrent reads. Reads have a separate limit, so
// they never wait for writes.
func (c *concurrency) limits() (writes, reads int) { return c.limit, max(2, c.limit/2) }

// record adds the result of a call.
func (c *concurrency) record(now time.Time, a Result) {
	switch {
	case a.Throttled:
		c.throttle(now, a)
	case a.Class == Read || a.epoch != c.epoch:
	default:
		c.window.add(a)
		if c.window.results >= max(minWindow, c.limit) {
			c.decide(now)
		}
	}
}

// throttle pauses new calls. The server often throttles several concurrent calls at once; together they halve the
// limit only once.
func (c *concurrency) throttle(now time.Time, a Result) {
	after := a.After
	if after <= 0 {
		after = defaultPause
	}
	if until := now.Add(min(after, MaxPause)); until.After(c.pausedUntil) {
		c.pausedUntil = until
	}
	if a.epoch != c.epoch {
		return
	}
	c.ceiling, c.ceilingUntil = max(minLimit, c.limit-1), now.Add(ceilingLasts)
	c.probedFrom = 0
	c.set(c.limit / 2)
}

// decide ends a window.
func (c *concurrency) decide(now time.Time) {
	w := c.window
	c.window = window{}
	c.windows++
	switch {
	case c.probedFrom > 0:
		c.remember(w, true)
		c.set(c.probedFrom)
		c.probedFrom = 0
		return
	case c.windows >= probeEvery:
		c.windows, c.probedFrom = 0, c.limit
		c.set(c.limit / 2)
		return
	}
	ratio := c.ratio(w)
	c.remember(w, false)
	switch {
	case ratio > slow:
		c.set(c.limit - max(1, c.limit/8))
	case ratio <= good && w.saturated && !w.failed:
		c.raise(now)
	}
}

func (c *concurrency) raise(now time.Time) {
	top := MaxLimit
	if now.Before(c.ceilingUntil) {
		top = c.ceiling
	}
	c.set(max(c.limit, min(c.limit+1, top)))
}

func (c *concurrency) set(limit int) {
	limit = min(max(limit, minLimit), MaxLimit)
	if limit != c.limit {
		c.limit, c.window = limit, window{}
		c.epoch++
	}
}

func (w *window) add(a Result) {
	w.results++
	w.saturated = w.saturated || a.saturated
	w.failed = w.failed || a.Failed
	w.seconds[a.Class] += a.Took.Seconds()
	w.weight[a.Class] += a.weight()
}

// ratio returns the cost of the calls in a window relative to the lowest cost.
func (c *concurrency) ratio(w window) float64 {
	var seconds, best float64
	for s, weight := range w.weight {
		if c.best[s] > 0 {
			seconds += w.seconds[s]
			best += weight * c.best[s]
		}
	}
	if best == 0 {
		return 1
	}
	return seconds / best
}

// remember replaces the lowest costs with the costs of a window that are lower, or whose predecessors have
// expired. Failed calls can be cheap and are ignored.
func (c *concurrency) remember(w window, anew bool) {
	if w.failed {
		return
	}
	for s, weight := range w.weight {
		if weight == 0 {
			continue
		}
		if cost := w.seconds[s] / weight; anew || c.best[s] == 0 || cost < c.best[s] {
			c.best[s] = cost
		}
	}
}
