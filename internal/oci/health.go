package oci

import (
	"maps"
	"sync"
	"time"
)

const (
	// silences is how many requests in a row, of anybody, end without an answer
	// before a host counts as dead.
	silences = 3
	// firstPause and lastPause bound the time for which a dead host is not asked.
	// It doubles with each further request that is not answered.
	firstPause = 5 * time.Second
	lastPause  = time.Minute
	// maxHosts bounds what is remembered.
	maxHosts = 1024
)

// Health remembers which registries do not answer, so that whoever asks one of
// them learns it at once and does not wait for the same silence again. Clients
// that share it share what they learned. After a pause one request is let through;
// an answer to it, whatever it says, ends the matter.
//
// A nil Health remembers nothing.
type Health struct {
	now func() time.Time

	mu    sync.Mutex
	hosts map[string]*silence
}

// silence is what is known of a host that did not answer last.
type silence struct {
	requests int
	pause    time.Duration
	until    time.Time
	// trying says that somebody was given leave after a pause.
	trying bool
	why    error
}

// NewHealth makes a memory. Now gives the time; the system clock when it is nil.
func NewHealth(now func() time.Time) *Health {
	if now == nil {
		now = time.Now
	}
	return &Health{now: now, hosts: map[string]*silence{}}
}

// ask gives leave to make a request to a host, or the cause why it would be in
// vain. Whoever is first after a pause gets leave for all.
func (h *Health) ask(host string) error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s, now := h.hosts[host], h.now()
	switch {
	case s == nil || s.requests < silences:
		return nil
	case now.Before(s.until):
		return &later{at: s.until, why: s.why}
	}
	s.until, s.trying = now.Add(s.pause), true
	return nil
}

// answered records that a host answers.
func (h *Health) answered(host string) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.hosts, host)
}

// silent records that a host did not answer. Of requests that were under way
// together, the later ones add nothing to the pause.
func (h *Health) silent(host string, why error) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.hosts[host]
	if s == nil {
		h.forget()
		s = &silence{}
		h.hosts[host] = s
	}
	s.requests++
	s.why = why
	if s.requests < silences || s.pause > 0 && !s.trying {
		return
	}
	s.pause, s.trying = min(max(2*s.pause, firstPause), lastPause), false
	s.until = h.now().Add(s.pause)
}

// pausing gives a cause the time before which a host is not asked again, if there
// is one.
func (h *Health) pausing(host string, why error) error {
	if h == nil {
		return why
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.hosts[host]; s != nil && s.requests >= silences {
		return &later{at: s.until, why: why}
	}
	return why
}

// forget makes room for another host.
func (h *Health) forget() {
	if len(h.hosts) < maxHosts {
		return
	}
	now := h.now()
	maps.DeleteFunc(h.hosts, func(_ string, s *silence) bool { return now.After(s.until) })
	if len(h.hosts) >= maxHosts {
		clear(h.hosts)
	}
}
