package faults_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/testing/fault"
)

// play is one scenario with all its faults.
type play struct {
	*stand
	scenario *scenario
	// ready are packages in the state before.
	ready []*round
	// calls are those of a package that nothing happens to.
	calls []fault.Call
	// tally counts the packages that each fault struck.
	tally map[string]int
	// leftovers are the packages that are being taken away.
	leftovers sync.WaitGroup
}

// trial is a package that is struck at one call.
type trial struct {
	*round
	fault fault.Fault
}

// measure lists the calls of a package that nothing happens to.
func (p *play) measure(t *testing.T) {
	t.Helper()
	rounds := p.take(t, 1)
	p.network.Set(rounds[0].name, fault.Fault{})
	p.do(t, p.scenario.act, rounds)
	p.until(t, "nothing happens to the package", rounds, p.scenario.act.then)
	p.quiet(t)
	p.calls = p.network.Calls(rounds[0].name)
	t.Logf("%s: %d calls where nothing happens", p.scenario.name, len(p.calls))
	p.putBack(t, rounds)
}

// run strikes a package at each call with each of the faults, until there is one
// for each fault that does not get as far as the call.
func (p *play) run(t *testing.T, faults []fault.Fault, restart bool) {
	t.Helper()
	started := time.Now()
	var open []fault.Fault
	for _, f := range faults {
		if p.reaches(f) > 0 {
			open = append(open, f)
		}
	}
	for todo := open; len(todo) > 0; {
		todo = p.strike(t, todo, restart)
	}
	for _, f := range open {
		t.Logf("%s; %s: %d calls", p.scenario.name, f, p.tally[f.String()])
	}
	if len(open) > 0 {
		t.Logf("in %s", time.Since(started).Round(100*time.Millisecond))
	}
}

// together says which faults are tried at the same time: all of them where each
// needs packages of its own, and one after the other where packages are used again.
func (p *play) together(faults []fault.Fault) (groups [][]fault.Fault) {
	if p.scenario.undo == nil {
		return [][]fault.Fault{faults}
	}
	for i := range faults {
		groups = append(groups, faults[i:i+1])
	}
	return groups
}

// reaches counts the calls that a fault strikes where nothing else happens.
func (p *play) reaches(f fault.Fault) (n int) {
	for _, c := range p.calls {
		if f.Strikes(c) {
			n++
		}
	}
	return n
}

// trials are packages to be struck at the calls from those of the faults on. There
// are more of them than calls: the last one is to make fewer calls than it would
// take to be struck.
func (p *play) trials(t *testing.T, faults []fault.Fault) (trials []trial, rounds []*round) {
	t.Helper()
	var all []fault.Fault
	for _, f := range faults {
		more := 1
		if f.Side != fault.Registry {
			more = 2 // How often a status is written depends on the moment.
		}
		for range max(p.reaches(f)-f.Call, 0) + more {
			all = append(all, f)
			f.Call++
		}
	}
	rounds = p.take(t, len(all))
	for i, f := range all {
		if p.scenario.meanwhile != nil {
			f.Do = func() {
				// The manager waits for it, so this is not the goroutine of the test.
				if err := p.scenario.meanwhile.do(t.Context(), p.stand, rounds[i]); err != nil {
					t.Error(err)
				}
			}
		}
		p.network.Set(rounds[i].name, f)
		trials = append(trials, trial{rounds[i], f})
	}
	return trials, rounds
}

// strike strikes packages with the faults and checks what becomes of them. It gives
// the faults for which there are further calls.
func (p *play) strike(t *testing.T, faults []fault.Fault, restart bool) (further []fault.Fault) {
	t.Helper()
	trials, rounds := p.trials(t, faults)
	p.do(t, p.scenario.act, rounds)
	p.untilStruck(t, rounds)
	further = p.count(t, trials)
	if restart {
		p.quiet(t)
		p.atAnyTime(t, rounds)
		p.restart(t)
	}
	p.until(t, "the packages have survived", rounds, p.scenario.end())
	p.quiet(t)
	p.atTheEnd(t, rounds)
	p.putBack(t, rounds)
	return further
}

// count adds up how many packages each fault has struck. The faults whose last
// package was among them are given back, for the calls after it.
func (p *play) count(t *testing.T, trials []trial) (further []fault.Fault) {
	t.Helper()
	for i, tr := range trials {
		_, struck := p.network.Struck(tr.name)
		if struck {
			p.tally[tr.fault.String()]++
		}
		last := i == len(trials)-1 || trials[i+1].fault.String() != tr.fault.String()
		switch {
		case struck && last:
			tr.fault.Call++
			further = append(further, tr.fault)
		case !struck && p.scenario.meanwhile != nil:
			p.do(t, *p.scenario.meanwhile, []*round{tr.round})
		}
	}
	return further
}

// untilStruck waits until each package is struck, or is as it should be without.
func (p *play) untilStruck(t *testing.T, rounds []*round) {
	t.Helper()
	var open []*round
	p.eventually(t, "each package is struck or done", func() []string {
		open = open[:0]
		for _, r := range rounds {
			if _, ok := p.network.Struck(r.name); !ok {
				open = append(open, r)
			}
		}
		return p.wrong(open, p.scenario.act.then, p.witness.view)
	})
	if len(open) > 0 {
		p.quiet(t)
	}
}

// take gives packages in the state before.
func (p *play) take(t *testing.T, n int) []*round {
	t.Helper()
	if missing := n - len(p.ready); missing > 0 {
		p.ready = append(p.ready, p.rounds(t, p.scenario, missing)...)
	}
	taken := p.ready[:n:n]
	p.ready = p.ready[n:]
	return taken
}

// putBack makes packages ready for another fault, or takes them away when they
// cannot be used again.
func (p *play) putBack(t *testing.T, rounds []*round) {
	t.Helper()
	for _, r := range rounds {
		p.network.Set(r.name, fault.Fault{})
	}
	if p.scenario.undo == nil {
		p.discard(t, rounds)
		return
	}
	p.play(t, *p.scenario.undo, rounds)
	for _, r := range rounds {
		r.base += p.scenario.adds
	}
	p.ready = append(p.ready, rounds...)
}

// discard takes packages away while the test goes on.
func (p *play) discard(t *testing.T, rounds []*round) {
	t.Helper()
	for _, r := range rounds {
		p.witness.forget(r)
	}
	p.leftovers.Go(func() {
		for _, r := range rounds {
			if err := remove(context.Background(), p.stand, r); err != nil {
				t.Errorf("%s: %v", r.name, err)
			}
		}
	})
}
