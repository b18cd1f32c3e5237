package remote

import (
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

const (
	// failureThreshold is the number of consecutive requests without a response, from all
	// clients, after which a host counts as unavailable.
	failureThreshold = 3
	// firstPause and lastPause bound the pause of an unavailable host. It doubles with
	// each further request without a response.
	firstPause = 5 * time.Second
	lastPause  = time.Minute
	// maxHosts bounds the number of hosts in a CircuitBreaker.
	maxHosts = 1024
)

// CircuitBreaker fails requests to registries that do not respond, immediately. Clients can
// share it. After a pause it allows one request; any response closes the breaker.
//
// A nil CircuitBreaker allows every request.
type CircuitBreaker struct {
	now func() time.Time

	mu    sync.Mutex
	hosts map[string]*hostState
}

// hostState is the state of a host that did not respond to the last request.
type hostState struct {
	requests int
	pause    time.Duration
	until    time.Time
	// trying reports whether the trial request after a pause is in progress.
	trying bool
	why    error
}

// NewCircuitBreaker returns an empty CircuitBreaker. now returns the time; nil means the
// system clock.
func NewCircuitBreaker(now func() time.Time) *CircuitBreaker {
	if now == nil {
		now = time.Now
	}
	return &CircuitBreaker{now: now, hosts: map[string]*hostState{}}
}

// transport returns a RoundTripper that sends requests with next, unless the breaker is open
// for their host: they then fail with a *retryAfterError. Any response closes the breaker.
func (h *CircuitBreaker) transport(next http.RoundTripper) http.RoundTripper {
	if h == nil {
		return next
	}
	return breakerTransport{next, h}
}

type breakerTransport struct {
	next    http.RoundTripper
	breaker *CircuitBreaker
}

// RoundTrip implements [http.RoundTripper].
func (t breakerTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	host := req.URL.Scheme + "://" + req.URL.Host
	if why := t.breaker.ask(host); why != nil {
		closeBody(req)
		return nil, why
	}
	resp, err := t.next.RoundTrip(req)
	switch {
	case err == nil:
		t.breaker.answered(host)
	case req.Context().Err() != nil, errcode.Known(err), isTLS(err):
		// The caller gave up, or the host responded.
	default:
		t.breaker.silent(host, reason(err))
	}
	return resp, err
}

// CloseIdleConnections closes the idle connections of the next transport.
func (t breakerTransport) CloseIdleConnections() { closeIdle(t.next) }

func closeIdle(t http.RoundTripper) {
	if t, ok := t.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// ask returns nil if a request to a host is allowed, and the reason otherwise. The first
// caller after a pause makes the trial request.
func (h *CircuitBreaker) ask(host string) error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s, now := h.hosts[host], h.now()
	switch {
	case s == nil || s.requests < failureThreshold:
		return nil
	case now.Before(s.until):
		return &retryAfterError{at: s.until, why: s.why}
	}
	s.until, s.trying = now.Add(s.pause), true
	return nil
}

// answered records that a host responds.
func (h *CircuitBreaker) answered(host string) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.hosts, host)
}

// silent records that a host did not respond. Concurrent requests extend the pause
// only once.
func (h *CircuitBreaker) silent(host string, why error) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.hosts[host]
	if s == nil {
		h.forget()
		s = &hostState{}
		h.hosts[host] = s
	}
	s.requests++
	s.why = why
	if s.requests < failureThreshold || s.pause > 0 && !s.trying {
		return
	}
	s.pause, s.trying = min(max(2*s.pause, firstPause), lastPause), false
	s.until = h.now().Add(s.pause)
}

// pausing adds the end of the host's pause to an error, if there is a pause.
func (h *CircuitBreaker) pausing(host string, why error) error {
	if h == nil {
		return why
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.hosts[host]; s != nil && s.requests >= failureThreshold {
		return &retryAfterError{at: s.until, why: why}
	}
	return why
}

// forget removes a host to make room for another.
func (h *CircuitBreaker) forget() {
	if len(h.hosts) < maxHosts {
		return
	}
	now := h.now()
	maps.DeleteFunc(h.hosts, func(_ string, s *hostState) bool { return now.After(s.until) })
	if len(h.hosts) >= maxHosts {
		clear(h.hosts)
	}
}
