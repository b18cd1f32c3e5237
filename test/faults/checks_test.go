package faults_test

import "testing"

// checkAlways checks the invariants that also hold between a crash and a restart.
func (p *runner) checkAlways(t *testing.T, instances []*instance) {
	t.Helper()
	for _, r := range instances {
		for name, o := range p.observer.snapshot(r).of(r).Objects {
			if o.Content == "" {
				t.Errorf("%s, %s: %s has the content of no version", r.name, p.history(r), name)
			}
		}
	}
	p.reportViolations(t, instances)
}

// checkEnd checks that the outcome is stable, and that a read from the API server agrees with it.
func (p *runner) checkEnd(t *testing.T, instances []*instance) {
	t.Helper()
	v, err := readAll(t.Context(), p.Client)
	if err != nil {
		t.Fatal(err)
	}
	for _, difference := range p.differences(instances, p.scenario.end(), func(*instance) snapshot { return v }) {
		t.Errorf("the state did not last: %s", difference)
	}
	p.reportViolations(t, instances)
}

// reportViolations reports the invariants that the observer found violated.
func (p *runner) reportViolations(t *testing.T, instances []*instance) {
	t.Helper()
	for _, r := range instances {
		for _, violation := range p.observer.violations(r) {
			t.Errorf("%s: %s", p.history(r), violation)
		}
	}
}
