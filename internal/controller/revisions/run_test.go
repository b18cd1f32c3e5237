package revisions

import (
	"context"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/kube"
	"github.com/xpkg-dev/xpkg/internal/controller/runtimes"
	"github.com/xpkg-dev/xpkg/internal/controller/status"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// A caller that has just read the endpoint of a function reaches it: the previous runtime keeps running for
// a while.
func TestPreviousFunctionRunsWhileCallersMayUseIt(t *testing.T) {
	available := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	for name, tc := range map[string]struct {
		reported string
		after    time.Duration
		state    runtime.State
		others   []plan.Owner
		again    time.Duration
		stops    bool
	}{
		"NotAvailable": {state: runtime.State{}, others: []plan.Owner{{Name: "old"}}},
		"NotReported": {
			reported: "elsewhere", state: runtime.State{Available: true, Endpoint: "here"}, others: []plan.Owner{{Name: "old"}},
			again: stopPoll,
		},
		"JustReported": {
			reported: "here", after: time.Second, state: runtime.State{Available: true, Endpoint: "here"},
			others: []plan.Owner{{Name: "old"}}, again: functionOverlap - time.Second,
		},
		"ReportedAWhileAgo": {
			reported: "here", after: functionOverlap, state: runtime.State{Available: true, Endpoint: "here"},
			others: []plan.Owner{{Name: "old"}}, stops: true,
		},
		"Alone":  {reported: "here", state: runtime.State{Available: true, Endpoint: "here"}},
		"HeldBy": {state: runtime.State{HeldBy: "old"}, others: []plan.Owner{{Name: "old"}}, stops: true},
	} {
		t.Run(name, func(t *testing.T) {
			fake := &fakeRuntime{state: tc.state, others: tc.others}
			now := func() time.Time { return available.Add(tc.after) }
			r := &Reconciler{
				Kind: v1.FunctionKind, API: kube.API{Status: &status.Reporter{Now: now}}, Runtimes: &Runtimes{Set: &runtimes.Set{}},
			}
			fn := &v1.FunctionRevision{}
			fn.Status.Endpoint = tc.reported
			fn.SetConditions(available, v1.RuntimeHealthy())
			state, err := r.rollOver(t.Context(), &reconciliation{Set: revision.Set{Revision: fn}, workload: &workload{
				runtime: fake,
			}})
			if err != nil || state.Again != tc.again {
				t.Errorf("requeued after %s, want %s (%v)", state.Again, tc.again, err)
			}
			if stopped := slices.Contains(fake.stopped, "old"); stopped != tc.stops {
				t.Errorf("the previous runtime has stopped: %t, want %t", stopped, tc.stops)
			}
		})
	}
}

// fakeRuntime returns the state that a test sets.
type fakeRuntime struct {
	runtime.Runtime
	state   runtime.State
	others  []plan.Owner
	stopped []string
}

func (r *fakeRuntime) Run(context.Context, runtime.Workload) (runtime.State, error) {
	return r.state, nil
}

func (r *fakeRuntime) Others(context.Context, plan.Requester) ([]plan.Owner, error) {
	return r.others, nil
}

func (r *fakeRuntime) Stop(_ context.Context, revision plan.Owner) (bool, error) {
	r.stopped = append(r.stopped, revision.Name)
	return true, nil
}
