package revisions

import (
	"cmp"
	"context"
	"fmt"
	"slices"
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
	// functionOverlap is the time for which the previous runtime of a Function keeps running after
	// the next one is healthy, because callers may not have read the new endpoint yet. Times in
	// conditions have a resolution of one second.
	functionOverlap = 3 * time.Second
)

// ensureRuntime runs the runtime of an active revision, and stops the runtimes of the other
// revisions of the package. For a Provider, it stops the others first, so that two runtimes never
// work on the same resources. For a Function, it stops the others when the new runtime serves, so
// that one runtime always serves. It does the same for a Provider whose revision only gets another
// name: both runtimes are the same program, as in the rollout of a Deployment.
func (r *Reconciler) ensureRuntime(ctx context.Context, in *reconciliation) error {
	if in.workload == nil {
		return r.stopUnusedRuntimes(ctx, in)
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
	if err == nil {
		err = r.activateNeeded(ctx, in, state)
	}
	if err != nil {
		return asRuntimeError(err)
	}
	r.recordRuntimeState(ctx, in, withoutFormerHealth(in, state))
	return nil
}

// runElsewhere is the message of the condition RuntimeActive of a runtime that another system runs.
const runElsewhere = "another system runs the runtime"

// withoutFormerHealth returns the state of an external runtime without a report if the manager ran the runtime before,
// and the condition is still the one that it wrote then. It removes that condition.
func withoutFormerHealth(in *reconciliation, state runtime.State) runtime.State {
	active, healthy := in.Revision.GetCondition(v1.TypeRuntimeActive), in.Revision.GetCondition(v1.TypeRuntimeHealthy)
	ofManager := healthy.Reason == v1.ReasonHealthy || healthy.Reason == v1.ReasonUnhealthy
	if !state.Reported || !ofManager || active.Reason == "" || active.Message == runElsewhere {
		return state
	}
	in.Revision.RevisionStatus().RemoveCondition(v1.TypeRuntimeHealthy)
	return runtime.Unreported(in.workload.spec, state.Endpoint)
}

// stopUnusedRuntimes stops the runtimes of a package for which the manager runs none: all of them if the choice runs
// none, or if the package shares its CRDs with namespaces, in which other runtimes work on them; otherwise those of
// earlier revisions, because the content of this one has no runtime. It removes the conditions of a runtime that the
// manager ran before, or could not run.
func (r *Reconciler) stopUnusedRuntimes(ctx context.Context, in *reconciliation) error {
	if in.Revision.RuntimeStatus() == nil {
		return nil
	}
	status := in.Revision.RevisionStatus()
	status.RemoveCondition(v1.TypeRuntimeHealthy)
	status.RemoveCondition(v1.TypeRuntimeActive)
	by := r.Runtimes.Of(r.Kind, in.Package.GetName())
	if by == nil || revision.IsShared(in.Package) {
		return asRuntimeError(r.Runtimes.StopPackage(ctx, reservations.KeyOf(in.Package)))
	}
	unlock, err := r.Runtimes.Lock(ctx, reservations.KeyOf(in.Package))
	if err != nil {
		return err
	}
	defer unlock()
	if err := checkStillActive(ctx, r.API, in.Set); err != nil {
		return err
	}
	remaining, err := runtimes.StopOthers(ctx, by, in.Requester())
	if remaining != "" {
		in.requeueAfter(stopPoll)
	}
	return asRuntimeError(err)
}

// checkStillActive fails with requeue.ErrStale unless the revision is active in the API server. The
// runtime of an inactive revision must not start.
func checkStillActive(ctx context.Context, api kube.API, set revision.Set) error {
	rev, pkg := set.Package.NewRevision(), v1.NewPackage(set.Package.PackageKind())
	if err := api.Reread(ctx, set.Revision, rev); err != nil {
		return err
	}
	if err := api.Reread(ctx, set.Package, pkg); err != nil {
		return err
	}
	if !revision.IsActive(rev) || rev.GetDeletionTimestamp() != nil ||
		pkg.GetDeletionTimestamp() != nil && !revision.IsTerminating(pkg) {
		return requeue.ErrStale
	}
	return nil
}

// rollOver makes one step of the transition from the running runtimes to the runtime of the
// revision, and returns the state of that runtime.
func (r *Reconciler) rollOver(ctx context.Context, in *reconciliation) (runtime.State, error) {
	w := in.workload
	if remaining, err := r.stopInOtherRuntimes(ctx, w); remaining != "" || err != nil {
		return waitingFor(remaining), err
	}
	others, err := w.runtime.Others(ctx, w.spec.Owner)
	if err != nil {
		return runtime.State{}, err
	}
	if r.Kind == v1.ProviderKind && !isRenamed(in.Set, others) {
		if remaining, err := runtimes.StopAll(ctx, w.runtime, others); remaining != "" || err != nil {
			return waitingFor(remaining), err
		}
		return w.runtime.Run(ctx, w.spec)
	}
	state, err := w.runtime.Run(ctx, w.spec)
	if err != nil || !state.Available && state.HeldBy == "" {
		return state, err
	}
	if fn, ok := in.Revision.(*v1.FunctionRevision); ok && state.Available && fn.Status.Endpoint != state.Endpoint {
		// The status must name the new endpoint before the previous one stops.
		state.Again = stopPoll
		return state, nil
	}
	if others, err = w.runtime.Others(ctx, w.spec.Owner); err != nil || len(others) == 0 {
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

// isRenamed reports whether a package has requested the names of Crossplane core, and the revisions with a runtime have
// the content of this one and its choices.
func isRenamed(set revision.Set, others []plan.Owner) bool {
	if revision.CoreName(
		set.Package, set.Revision.RevisionSpec().Digest, set.Package.GetAnnotations()[revision.AnnotationNames],
	) != set.Revision.GetName() {
		return false
	}
	return !slices.ContainsFunc(others, func(o plan.Owner) bool {
		i := slices.IndexFunc(set.Siblings, func(s v1.PackageRevision) bool { return s.GetName() == o.Name })
		return i < 0 || !revision.SameProgram(set.Siblings[i], set.Revision)
	})
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
		Reason: runtime.ReasonWaiting, Message: fmt.Sprintf("the runtime of %s has to stop before this one starts", other),
		Again: stopPoll,
	}
}

// recordRuntimeState records the state of the runtime in the status of the revision and in the
// outcome.
func (r *Reconciler) recordRuntimeState(ctx context.Context, in *reconciliation, state runtime.State) {
	before := in.Revision.GetCondition(v1.TypeRuntimeHealthy)
	active := v1.RuntimeActive()
	if in.workload.spec.AwaitingActivation {
		active = v1.RuntimeAwaitingActivation()
	}
	if state.Reported {
		active.Message = runElsewhere
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
	in.requeueAfter(state.Again)
}

// runtimeCondition returns the condition for a state, and false if there is none to set: an
// external runtime that has reported its health sets the condition itself.
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

// backoff returns the delay until the next check of a state that is not watched, such as the
// conditions of Pods. The delay grows with the time since the last change of the condition, from
// two seconds to a minute.
func (r *Reconciler) backoff(c v1.Condition) time.Duration {
	const first, last = 2 * time.Second, time.Minute
	return requeue.Jitter(min(last, max(first, r.API.Now().Sub(c.LastTransitionTime.Time)/4)))
}
