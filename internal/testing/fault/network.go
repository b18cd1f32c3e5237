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
	attribution Subjects

	mu       sync.Mutex
	subjects map[string]*subject
	last     time.Time
	// stale is the number of subjects that are stale.
	stale int
}

// subject is the state of one subject since its fault was set.
type subject struct {
	fault Fault
	calls []Call
	// left is the number of calls that pass before the one that gets the fault.
	left     int
	injected *Call
	dead     bool
	// disarmed reports that the fault is not injected any more.
	disarmed bool
	// fresh is closed when reads are no longer stale.
	fresh chan struct{}
	// seen are the last responses to reads, by their Accept header and URL. While reads are stale,
	// seen responses are repeated.
	seen map[string]*answer
}

// New returns a network without faults.
func New(attribution Subjects) *Network {
	return &Network{attribution: attribution, subjects: map[string]*subject{}, last: time.Now()}
}

// Set sets the fault of a subject and resets its calls.
func (n *Network) Set(name string, f Fault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.subjects[name] = &subject{fault: f, left: f.Call, seen: map[string]*answer{}}
}

// Clear removes all subjects and their faults, so that the next program that uses the network is a
// new process.
func (n *Network) Clear() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.subjects)
}

// Injected returns the call that got the fault of a subject, if any.
func (n *Network) Injected(name string) (Call, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.subjects[name]
	if s == nil || s.injected == nil {
		return Call{}, false
	}
	return *s.injected, true
}

// Fault returns the fault of a subject.
func (n *Network) Fault(name string) Fault {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s := n.subjects[name]; s != nil {
		return s.fault
	}
	return Fault{}
}

// Calls returns the calls of a subject since its fault was set. Calls of a dead process are
// not included.
func (n *Network) Calls(name string) []Call {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s := n.subjects[name]; s != nil {
		return slices.Clone(s.calls)
	}
	return nil
}

// Idle returns the time since the last call that counts, or since the last subject was stale. It is 0 while a subject
// is stale.
func (n *Network) Idle() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stale > 0 {
		return 0
	}
	return time.Since(n.last)
}

// Disarm lets all further calls of a subject pass if it did not get its fault yet.
func (n *Network) Disarm(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s := n.subjects[name]; s != nil {
		s.disarmed = true
	}
}

// Transport returns a transport that injects the faults of the network into calls to a side.
func (n *Network) Transport(side Side, next http.RoundTripper) http.RoundTripper {
	return &transport{network: n, side: side, next: next}
}

// step records a call, and returns the kind of the fault to inject into it, which is None for most
// calls.
func (n *Network) step(name string, c Call) (s *subject, kind Kind) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s = n.subjects[name]
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
	if s.injected != nil || s.disarmed || !s.fault.Applies(c) {
		return s, None
	}
	if s.left > 0 {
		s.left--
		return s, None
	}
	n.inject(s, c)
	return s, s.fault.Kind
}

func (n *Network) inject(s *subject, c Call) {
	s.injected = &c
	s.dead = s.fault.Kind.Kills()
	if s.fault.Kind != Stale {
		return
	}
	fresh := make(chan struct{})
	s.fresh = fresh
	n.stale++
	time.AfterFunc(s.fault.Duration, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.stale--
		n.last = time.Now()
		close(fresh)
	})
}

// old reports whether reads of the subject are stale. If so, it returns the channel that is closed
// when they are no longer stale.
func (n *Network) old(name string) (fresh <-chan struct{}, old bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.subjects[name]
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
