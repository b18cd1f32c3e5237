package revisions

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/kube"
	"github.com/xpkg-dev/xpkg/internal/controller/logging"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/controller/reservations"
	"github.com/xpkg-dev/xpkg/internal/controller/runtimes"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

const (
	// stopPoll is the pause between two checks of whether a runtime has stopped.
	stopPoll = time.Second
	// functionOverlap is how long the previous runtime of a Function keeps running after the next
	// one has reported its endpoint, because callers may not have read it yet. Times in conditions
	// have a resolution of one second.
	functionOverlap = 3 * time.Second
)

// ensureRuntime runs the runtime of an active revision, and stops the runtimes of the other revisions of
// the package. For a Provider it stops them first, so that two never work on the same resources. For a
// Function it stops them when the new one serves, so that there always is one.
func (r *Reconciler) ensureRuntime(ctx context.Context, in *install) error {
	if in.workload == nil {
		return nil
	}
	unlock, err := r.Runtimes.Lock(ctx, reservations.KeyOf(in.Package))
	if err != nil {
		return err
	}
	defer unlock()
	if err := checkStillActive(ctx, r.API, in.Set); err != nil {
		return err
	}
	state, err := r.rollOver(ctx, in)
	if err != nil {
		return asRuntimeError(err)
	}
	r.recordRuntimeState(ctx, in, state)
	return nil
}

// checkStillActive fails with requeue.ErrStale unless the API server has the revision as active: no other
// runtime may be started.
func checkStillActive(ctx context.Context, api kube.API, set revision.Set) error {
	rev, pkg := set.Package.NewRevision(), v1.NewPackage(set.Package.PackageKind())
	if err := api.Reread(ctx, set.Revision, rev); err != nil {
		return err
	}
	if err := api.Reread(ctx, set.Package, pkg); err != nil {
		return err
	}
	if !revision.IsActive(rev) || rev.GetDeletionTimestamp() != nil || pkg.GetDeletionTimestamp() != nil && !revision.IsTerminating(pkg) {
		return requeue.ErrStale
	}
	return nil
}

// rollOver makes one step from the runtimes that run to the one that should run.
func (r *Reconciler) rollOver(ctx context.Context, in *install) (runtime.State, error) {
	w := in.workload
	if remaining, err := r.stopInOtherRuntimes(ctx, w); remaining != "" || err != nil {
		return waitingFor(remaining), err
	}
	if r.Kind == v1.ProviderKind {
		if remaining, err := runtimes.StopOthers(ctx, w.runtime, w.spec.Owner); remaining != "" || err != nil {
			return waitingFor(remaining), err
		}
		return w.runtime.Run(ctx, w.spec)
	}
	state, err := w.runtime.Run(ctx, w.spec)
	if err != nil || !state.Available && state.HeldBy == "" {
		return state, err
	}
	if fn := in.Revision.(*v1.FunctionRevision); state.Available && fn.Status.Endpoint != state.Endpoint {
		// The status must name the new endpoint before the previous one stops.
		state.Again = stopPoll
		return state, nil
	}
	others, err := w.runtime.Others(ctx, w.spec.Owner)
	if err != nil || len(others) == 0 {
		return state, err
	}
	available := in.Revision.GetCondition(v1.TypeRuntimeHealthy).LastTransitionTime
	if rest := functionOverlap - r.API.Now().Sub(available.Time); state.Available && rest > 0 {
		state.Again = rest
		return state, nil
	}
	if remaining, err := runtimes.StopAll(ctx, w.runtime, others); remaining != "" || err != nil {
		state.Again = stopPoll
		return state, err
	}
	return state, nil
}

// stopInOtherRuntimes stops the workloads of the package in other runtimes, as after the administrator has chosen
// another runtime.
func (r *Reconciler) stopInOtherRuntimes(ctx context.Context, w *workload) (remaining string, err error) {
	all := plan.Requester{Package: w.spec.Owner.Package}
	for _, name := range r.Runtimes.Used() {
		if other := r.Runtimes.ByName[name]; other != w.runtime {
			if remaining, err := runtimes.StopOthers(ctx, other, all); remaining != "" || err != nil {
				return remaining, err
			}
		}
	}
	return "", nil
}

// waitingFor returns the state of a runtime that waits for another one to stop.
func waitingFor(other string) runtime.State {
	return runtime.State{
		Reason: runtime.ReasonWaiting, Message: fmt.Sprintf("the runtime of %s has to stop before this one starts", other), Again: stopPoll,
	}
}

// recordRuntimeState writes the state of the runtime into the conditions of the revision and into the
// outcome.
func (r *Reconciler) recordRuntimeState(ctx context.Context, in *install, state runtime.State) {
	before := in.Revision.GetCondition(v1.TypeRuntimeHealthy)
	active := v1.RuntimeActive()
	if in.workload.spec.AwaitingActivation {
		active = v1.RuntimeAwaitingActivation()
	}
	in.Revision.SetConditions(r.API.Time(), active)
	if fn, ok := in.Revision.(*v1.FunctionRevision); ok && state.Available {
		fn.Status.Endpoint = state.Endpoint
	}
	if c, ok := runtimeCondition(state); ok {
		in.Revision.SetConditions(r.API.Time(), c)
	}
	if !state.Available {
		in.summary = revision.Summary{Reason: v1.ConditionReason(state.Reason), Message: state.Message}
		in.requeueAfter(cmp.Or(state.Again, r.backoff(in.Revision.GetCondition(v1.TypeRuntimeHealthy))))
		return
	}
	if before.Status != corev1.ConditionTrue {
		logging.FromContext(ctx).InfoContext(ctx, "the runtime is available", "image", in.workload.spec.Image())
	}
	if in.workload.spec.AwaitingActivation {
		state.Again = safeStartPoll
	}
	in.requeueAfter(state.Again)
}

// runtimeCondition returns the condition for a state. An external runtime reports its own condition, so
// there is none to set.
func runtimeCondition(s runtime.State) (v1.Condition, bool) {
	switch {
	case s.Reported && s.Reason == runtime.ReasonNotReported && !s.Available:
		return v1.RuntimeUnknownHealth(s.Message), true
	case s.Reported:
		return v1.Condition{}, false
	case s.Available:
		return v1.RuntimeHealthy(), true
	}
	return v1.RuntimeUnhealthy(s.Message), true
}

// backoff returns when a state that is not watched, such as the conditions of Pods, is checked again: the
// longer the condition has not changed, the less often.
func (r *Reconciler) backoff(c v1.Condition) time.Duration {
	const first, last = 2 * time.Second, time.Minute
	return requeue.Jitter(min(last, max(first, r.API.Now().Sub(c.LastTransitionTime.Time)/4)))
}
