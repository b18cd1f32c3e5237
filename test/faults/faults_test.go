package faults_test

import (
	"slices"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/testing/fault"
)

// staleness is how long reads stay old.
const staleness = time.Second

// failing are the faults at which only a call to the API server fails: what has to
// be done is done in the end without help.
var failing = []fault.Fault{
	{Kind: fault.Conflict, Side: fault.Cluster},
	{Kind: fault.Throttled, Side: fault.Cluster},
	{Kind: fault.ServerError, Side: fault.Cluster},
	{Kind: fault.LostAnswer, Side: fault.Cluster},
	{Kind: fault.Stale, Side: fault.Cluster, Lasting: staleness},
}

// withholding are those at which only a call to a registry fails.
var withholding = []fault.Fault{
	{Kind: fault.Throttled, Side: fault.Registry},
	{Kind: fault.ServerError, Side: fault.Registry},
	{Kind: fault.LostAnswer, Side: fault.Registry},
	{Kind: fault.Reset, Side: fault.Registry},
	{Kind: fault.Truncated, Side: fault.Registry},
	{Kind: fault.Stall, Side: fault.Registry},
	{Kind: fault.Hang, Side: fault.Registry},
}

// fatal are the faults after which nobody goes on: the process is dead, or what a
// registry sent cannot be trusted, and a restart makes it ask again.
var fatal = []fault.Fault{
	{Kind: fault.KilledBefore},
	{Kind: fault.KilledAfter},
	{Kind: fault.WrongBytes, Side: fault.Registry},
}

// Every call of every scenario is struck by every fault. The packages of a
// scenario are struck all at once, each at another call: a package whose calls do
// not arrive any more is, for the API server, one whose manager is dead.
func TestFaultAtEveryCall(t *testing.T) {
	s := newStand(t, fault.Named(tokens, "/locks"), 1)
	s.hold(t)
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			p := &play{stand: s, scenario: sc, tally: map[string]int{}}
			defer p.leftovers.Wait()
			p.measure(t)
			if sc.meanwhile != nil {
				p.run(t, []fault.Fault{{Kind: fault.Meanwhile}}, false)
				return
			}
			all := failing
			if sc.pulls {
				all = slices.Concat(failing, withholding)
			}
			for _, some := range p.together(all) {
				p.run(t, some, false)
			}
			for _, some := range p.together(fatal) {
				p.run(t, some, true)
			}
			p.discard(t, p.ready)
		})
	}
}
