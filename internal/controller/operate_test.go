package controller

import (
	"context"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Whoever has read where a function answers, and calls it a moment later, reaches it:
// the program of the version before goes on for a while.
func TestFunctionsOverlap(t *testing.T) {
	answered := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	for name, tc := range map[string]struct {
		said   string
		after  time.Duration
		state  runtime.State
		others []plan.Owner
		again  time.Duration
		ends   bool
	}{
		"NotAvailable":  {state: runtime.State{}, others: []plan.Owner{{Name: "old"}}},
		"NotSaid":       {said: "elsewhere", state: runtime.State{Available: true, Endpoint: "here"}, others: []plan.Owner{{Name: "old"}}, again: leavingPoll},
		"JustSaid":      {said: "here", after: time.Second, state: runtime.State{Available: true, Endpoint: "here"}, others: []plan.Owner{{Name: "old"}}, again: overlap - time.Second},
		"SaidAWhileAgo": {said: "here", after: overlap, state: runtime.State{Available: true, Endpoint: "here"}, others: []plan.Owner{{Name: "old"}}, ends: true},
		"Alone":         {said: "here", state: runtime.State{Available: true, Endpoint: "here"}},
		"HeldBy":        {state: runtime.State{HeldBy: "old"}, others: []plan.Owner{{Name: "old"}}, ends: true},
	} {
		t.Run(name, func(t *testing.T) {
			fake := &fakePrograms{state: tc.state, others: tc.others}
			r := &revisionReconciler{kind: v1.FunctionKind, world: &world{
				programs: &programs{}, now: func() time.Time { return answered.Add(tc.after) },
			}}
			fn := &v1.FunctionRevision{}
			fn.Status.Endpoint = tc.said
			fn.SetConditions(answered, v1.RuntimeHealthy())
			state, err := r.handOver(t.Context(), family{rev: fn}, &job{runtime: fake})
			if err != nil || state.Again != tc.again {
				t.Errorf("again in %s, want %s (%v)", state.Again, tc.again, err)
			}
			if ended := slices.Contains(fake.ended, "old"); ended != tc.ends {
				t.Errorf("the program before has ended: %t, want %t", ended, tc.ends)
			}
		})
	}
}

// fakePrograms run as a test says.
type fakePrograms struct {
	runtime.Runtime
	state  runtime.State
	others []plan.Owner
	ended  []string
}

func (p *fakePrograms) Run(context.Context, runtime.Program) (runtime.State, error) {
	return p.state, nil
}

func (p *fakePrograms) Others(context.Context, plan.Requester) ([]plan.Owner, error) {
	return p.others, nil
}

func (p *fakePrograms) Stop(_ context.Context, revision plan.Owner) (bool, error) {
	p.ended = append(p.ended, revision.Name)
	return true, nil
}
