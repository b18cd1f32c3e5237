package faults_test

import "testing"

// atAnyTime checks what must hold also between a crash and a restart.
func (p *play) atAnyTime(t *testing.T, rounds []*round) {
	t.Helper()
	for _, r := range rounds {
		for what, o := range p.witness.view(r).of(r).Objects {
			if o.Content == "" {
				t.Errorf("%s, %s: %s is of no version", r.name, p.history(r), what)
			}
		}
	}
	p.accuse(t, rounds)
}

// atTheEnd checks that the end is one, on which nothing follows, and that the API
// server says so, too, when it is asked.
func (p *play) atTheEnd(t *testing.T, rounds []*round) {
	t.Helper()
	v, err := look(t.Context(), p.client)
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range p.wrong(rounds, p.scenario.end(), func(*round) view { return v }) {
		t.Errorf("the state did not last: %s", wrong)
	}
	p.accuse(t, rounds)
}

// accuse reports what the witness has seen.
func (p *play) accuse(t *testing.T, rounds []*round) {
	t.Helper()
	for _, r := range rounds {
		for _, seen := range p.witness.against(r) {
			t.Errorf("%s: %s", p.history(r), seen)
		}
	}
}
