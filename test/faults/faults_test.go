package faults_test

import (
	"slices"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/testing/fault"
)

// staleness is the duration of stale reads.
const staleness = time.Second

// clusterFaults are the faults in which only a call to the API server fails. The manager recovers
// without help.
var clusterFaults = []fault.Fault{
	{Kind: fault.Conflict, Side: fault.Cluster},
	{Kind: fault.Throttled, Side: fault.Cluster},
	{Kind: fault.ServerError, Side: fault.Cluster},
	{Kind: fault.LostAnswer, Side: fault.Cluster},
	{Kind: fault.Stale, Side: fault.Cluster, Duration: staleness},
}

// registryFaults are the faults in which only a call to a registry fails.
var registryFaults = []fault.Fault{
	{Kind: fault.Throttled, Side: fault.Registry},
	{Kind: fault.ServerError, Side: fault.Registry},
	{Kind: fault.LostAnswer, Side: fault.Registry},
	{Kind: fault.Reset, Side: fault.Registry},
	{Kind: fault.Truncated, Side: fault.Registry},
	{Kind: fault.Stall, Side: fault.Registry},
	{Kind: fault.Hang, Side: fault.Registry},
}

// fatalFaults are the faults from which only a restart recovers: the process is dead, or the content
// of a registry is corrupt and is requested again after a restart.
var fatalFaults = []fault.Fault{
	{Kind: fault.KilledBefore},
	{Kind: fault.KilledAfter},
	{Kind: fault.WrongBytes, Side: fault.Registry},
}

// The manager survives each fault at each call of each scenario. All packages of a scenario get
// their faults at the same time, each at another call: for the API server, a package whose calls no
// longer arrive is one whose manager is dead.
//
// hardening: J1, J2, J3, J4, J6
func TestFaultAtEveryCall(t *testing.T) {
	s := newSuite(t, fault.SubjectsByName(tokens, "/locks"), 1)
	s.installHolder(t)
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			p := &runner{suite: s, scenario: sc, tally: map[string]int{}}
			defer p.leftovers.Wait()
			p.measure(t)
			if sc.meanwhile != nil {
				p.run(t, []fault.Fault{{Kind: fault.Meanwhile}}, false)
				return
			}
			all := clusterFaults
			if sc.pulls {
				all = slices.Concat(clusterFaults, registryFaults)
			}
			for _, some := range p.groups(all) {
				p.run(t, some, false)
			}
			for _, some := range p.groups(fatalFaults) {
				p.run(t, some, true)
			}
			p.discard(t, p.ready)
		})
	}
}
