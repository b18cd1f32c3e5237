package fault

import (
	"net/http"
	"slices"
	"sync"
	"time"
)

// Network injects faults between a program and the servers that it calls. It is safe for
// concurrent use.
type Network struct {
	who Subjects

	mu       sync.Mutex
	subjects map[string]*subject
	last     time.Time
}

// subject is the state of one subject since its fault was set.
type subject struct {
	fault Fault
	calls []Call
	// left is how many calls pass before the one that is struck.
	left   int
	struck *Call
	dead   bool
	// fresh is closed when reads are not stale any more.
	fresh chan struct{}
	// seen are the last answers to reads, by their address. While reads are stale
	// they stay as they are.
	seen map[string]*answer
}

// New makes a network without faults.
func New(who Subjects) *Network {
	return &Network{who: who, subjects: map[string]*subject{}, last: time.Now()}
}

// Set sets the fault of a subject and resets its calls.
func (n *Network) Set(who string, f Fault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.subjects[who] = &subject{fault: f, left: f.Call, seen: map[string]*answer{}}
}

// Clear takes all faults away: the next program that uses the network is a new
// process.
func (n *Network) Clear() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.subjects)
}

// Struck returns the call that got the fault of a subject, if any.
func (n *Network) Struck(who string) (Call, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.subjects[who]
	if s == nil || s.struck == nil {
		return Call{}, false
	}
	return *s.struck, true
}

// Fault returns the fault of a subject.
func (n *Network) Fault(who string) Fault {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s := n.subjects[who]; s != nil {
		return s.fault
	}
	return Fault{}
}

// Calls returns the calls of a subject since its fault was set. Calls of a dead process are
// not included.
func (n *Network) Calls(who string) []Call {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s := n.subjects[who]; s != nil {
		return slices.Clone(s.calls)
	}
	return nil
}

// Quiet returns the time since the last call that counts.
func (n *Network) Quiet() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Since(n.last)
}

// Transport puts the network in front of a side.
func (n *Network) Transport(side Side, next http.RoundTripper) http.RoundTripper {
	return &transport{network: n, side: side, next: next}
}

// step records a call and returns the fault to inject into it, None for most calls.
func (n *Network) step(who string, c Call) (s *subject, what Kind) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s = n.subjects[who]
	if s != nil && s.dead {
		return s, KilledBefore
	}
	if c.counts() {
		n.last = time.Now()
	}
	if s == nil || !c.counts() || c.repeats(s.calls) {
		return s, None
	}
	s.calls = append(s.calls, c)
	if s.struck != nil || !s.fault.Strikes(c) {
		return s, None
	}
	if s.left > 0 {
		s.left--
		return s, None
	}
	s.strike(c)
	return s, s.fault.Kind
}

func (s *subject) strike(c Call) {
	s.struck = &c
	s.dead = s.fault.Kind.Kills()
	if s.fault.Kind == Stale {
		fresh := make(chan struct{})
		s.fresh = fresh
		time.AfterFunc(s.fault.Lasting, func() { close(fresh) })
	}
}

// old reports whether reads of the subject are stale, and until when.
func (n *Network) old(who string) (fresh <-chan struct{}, old bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.subjects[who]
	if s == nil || s.fresh == nil {
		return nil, false
	}
	select {
	case <-s.fresh:
		return nil, false
	default:
		return s.fresh, true
	}
}
