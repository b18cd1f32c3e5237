package faults_test

import (
	"slices"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/testing/fault"
	"github.com/xpkg-dev/xpkg/internal/testing/lane"
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

// kills are the faults in which the process ends. Only a restart recovers.
var kills = []fault.Fault{
	{Kind: fault.KilledBefore},
	{Kind: fault.KilledAfter},
}

// corruptions are the faults in which the content of a registry is corrupt. It is requested again after a restart.
var corruptions = []fault.Fault{
	{Kind: fault.WrongBytes, Side: fault.Registry},
}

// everyFault reports whether each call gets all faults, one after the other. Otherwise one of sparse calls gets one
// fault of each group, and the faults of a group take turns.
var everyFault = lane.IsFull()

const sparse = 12

// turn selects the calls that get a fault: each one whose number has the remainder, divided by sparse times the number
// of faults of the group.
type turn struct{ faults, remainder int }

func (u turn) includes(call int) bool { return everyFault || call%u.faults == u.remainder }

// turns returns the turns of the faults in groups, by the text of the fault. They differ between scenarios, which make
// similar calls.
func turns(scenario int, groups ...[]fault.Fault) map[string]turn {
	out := map[string]turn{}
	for _, group := range groups {
		for i, f := range group {
			out[f.String()] = turn{sparse * len(group), (sparse*i + scenario) % (sparse * len(group))}
		}
	}
	return out
}

// The manager survives the faults at each call of each scenario: in the full lane all of them, and otherwise one of
// each group at one of several calls. All packages of a scenario get
// their faults at the same time, each at another call: for the API server, a package whose calls no
// longer arrive is one whose manager is dead.
//
// hardening: J1, J2, J3, J4, J6
func TestFaultAtEveryCall(t *testing.T) {
	s := newSuite(t, fault.SubjectsByName(tokens, "/locks", "/controllerrevisions"), 1)
	s.installHolder(t)
	for i, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			p := &runner{
				suite: s, scenario: sc, tally: map[string]int{}, turns: turns(i, clusterFaults, registryFaults, kills, corruptions),
			}
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
			for _, some := range p.groups(slices.Concat(kills, corruptions)) {
				p.run(t, some, true)
			}
			p.discard(t, p.ready)
		})
	}
}
