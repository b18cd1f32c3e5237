package faults_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/testing/fault"
)

// runner runs one scenario with all its faults.
type runner struct {
	*suite
	scenario *scenario
	// ready contains packages in the initial state.
	ready []*instance
	// calls contains the calls of a package without a fault.
	calls []fault.Call
	// turns select the calls that get each fault. A fault without a turn is for all calls.
	turns map[string]turn
	// tally counts the packages that got each fault.
	tally map[string]int
	// leftovers waits for the packages that are being deleted.
	leftovers sync.WaitGroup
}

// trial is a package that gets a fault at one call.
type trial struct {
	*instance
	fault fault.Fault
}

// measure records the calls of a package without a fault.
func (p *runner) measure(t *testing.T) {
	t.Helper()
	instances := p.acquire(t, 1)
	p.network.Set(instances[0].name, fault.Fault{})
	p.do(t, p.scenario.act, instances)
	p.until(t, "the package without a fault is done", instances, p.scenario.act.then)
	p.waitIdle(t)
	p.calls = p.network.Calls(instances[0].name)
	t.Logf("%s: %d calls without a fault", p.scenario.name, len(p.calls))
	p.release(t, instances)
}

// run injects each of the faults at each call, until there is a package for each fault that makes
// fewer calls.
func (p *runner) run(t *testing.T, faults []fault.Fault, restart bool) {
	t.Helper()
	started := time.Now()
	var open []fault.Fault
	for _, f := range faults {
		if p.countCalls(f) > 0 {
			open = append(open, f)
		}
	}
	for todo := open; len(todo) > 0; {
		todo = p.inject(t, todo, restart)
	}
	for _, f := range open {
		t.Logf("%s; %s: %d calls", p.scenario.name, f, p.tally[f.String()])
	}
	if len(open) > 0 {
		t.Logf("in %s", time.Since(started).Round(100*time.Millisecond))
	}
}

// groups returns the faults that are tried at the same time: all of them if each package is used
// once, and one after the other if packages are reused.
func (p *runner) groups(faults []fault.Fault) (groups [][]fault.Fault) {
	if p.scenario.undo == nil {
		return [][]fault.Fault{faults}
	}
	for i := range faults {
		groups = append(groups, faults[i:i+1])
	}
	return groups
}

// countCalls counts the calls to which a fault applies in a run without faults.
func (p *runner) countCalls(f fault.Fault) (n int) {
	for _, c := range p.calls {
		if f.Applies(c) {
			n++
		}
	}
	return n
}

// trials returns packages that get the faults at their next calls. There are more packages than
// calls: the last one is expected to make too few calls to get its fault.
func (p *runner) trials(t *testing.T, faults []fault.Fault) (trials []trial, instances []*instance) {
	t.Helper()
	var all []fault.Fault
	for _, f := range faults {
		more := 1
		if f.Side != fault.Registry {
			more = 2 // The number of status writes varies.
		}
		expected, u := p.countCalls(f), p.turns[f.String()]
		for last := max(expected, f.Call) + more; f.Call < last; f.Call++ {
			// A call that is not expected shows that there are further ones.
			if u.faults == 0 || u.includes(f.Call) || f.Call >= expected {
				all = append(all, f)
			}
		}
	}
	instances = p.acquire(t, len(all))
	for i, f := range all {
		if p.scenario.meanwhile != nil {
			f.Do = func() {
				// The manager calls this function, so it must not call t.Fatal.
				if err := p.scenario.meanwhile.do(t.Context(), p.suite, instances[i]); err != nil {
					t.Error(err)
				}
			}
		}
		p.network.Set(instances[i].name, f)
		trials = append(trials, trial{instances[i], f})
	}
	return trials, instances
}

// inject runs the scenario for packages with the faults and checks the outcomes. It returns the
// faults for which there are further calls.
func (p *runner) inject(t *testing.T, faults []fault.Fault, restart bool) (further []fault.Fault) {
	t.Helper()
	trials, instances := p.trials(t, faults)
	p.do(t, p.scenario.act, instances)
	p.waitInjected(t, instances)
	further = p.count(t, trials)
	if restart {
		p.waitIdle(t)
		p.checkAlways(t, instances)
		p.restart(t)
	}
	// A fault at a call that is repeated later, such as one of a poll, must not be injected while the end is checked.
	for _, r := range instances {
		p.network.Disarm(r.name)
	}
	p.until(t, "the packages have survived", instances, p.scenario.end())
	p.waitIdle(t)
	// A fault at a call after the outcome was reached delays the manager, which is idle until it tries again.
	p.until(t, "the packages have recovered", instances, p.scenario.end())
	p.waitIdle(t)
	p.checkEnd(t, instances)
	p.release(t, instances)
	return further
}

// count counts the packages that got each fault. It returns the faults that the last of their
// packages got, for the calls after it.
func (p *runner) count(t *testing.T, trials []trial) (further []fault.Fault) {
	t.Helper()
	for i, tr := range trials {
		_, injected := p.network.Injected(tr.name)
		if injected {
			p.tally[tr.fault.String()]++
		}
		last := i == len(trials)-1 || trials[i+1].fault.String() != tr.fault.String()
		switch {
		case injected && last:
			tr.fault.Call++
			further = append(further, tr.fault)
		case !injected && p.scenario.meanwhile != nil:
			p.do(t, *p.scenario.meanwhile, []*instance{tr.instance})
		}
	}
	return further
}

// waitInjected waits until each package got its fault or reached the outcome without it.
func (p *runner) waitInjected(t *testing.T, instances []*instance) {
	t.Helper()
	var open []*instance
	p.eventually(t, "each package got its fault or is done", func() []string {
		open = open[:0]
		for _, r := range instances {
			if _, ok := p.network.Injected(r.name); !ok {
				open = append(open, r)
			}
		}
		return p.differences(open, p.scenario.act.then, p.observer.snapshot)
	})
	if len(open) > 0 {
		p.waitIdle(t)
	}
}

// acquire returns packages in the initial state.
func (p *runner) acquire(t *testing.T, n int) []*instance {
	t.Helper()
	if missing := n - len(p.ready); missing > 0 {
		p.ready = append(p.ready, p.newInstances(t, p.scenario, missing)...)
	}
	taken := p.ready[:n:n]
	p.ready = p.ready[n:]
	return taken
}

// release returns packages to the initial state, or deletes them if they cannot be reused.
func (p *runner) release(t *testing.T, instances []*instance) {
	t.Helper()
	for _, r := range instances {
		p.network.Set(r.name, fault.Fault{})
	}
	if p.scenario.undo == nil {
		p.discard(t, instances)
		return
	}
	p.runStep(t, *p.scenario.undo, instances)
	for _, r := range instances {
		r.base += p.scenario.adds
	}
	p.ready = append(p.ready, instances...)
}

// discard deletes packages in the background.
func (p *runner) discard(t *testing.T, instances []*instance) {
	t.Helper()
	for _, r := range instances {
		p.observer.forget(r)
	}
	p.leftovers.Go(func() {
		for _, r := range instances {
			if err := remove(context.Background(), p.suite, r); err != nil {
				t.Errorf("%s: %v", r.name, err)
			}
		}
	})
}
