package controller

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/controller/reservations"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

const (
	// leavingPoll is how often one looks whether a program has ended.
	leavingPoll = time.Second
	// overlap is how long the program of a function goes on when the next one says
	// where it answers: callers have just been told where this one does, and may not
	// have called yet. Times in conditions are those of whole seconds.
	overlap = 3 * time.Second
)

// operate has the program of an active revision run, and those of the other revisions
// of the package end: of a Provider before the new one starts, so that two never work
// on the same resources; of a Function when the new one answers, so that there always
// is one.
func (r *revisionReconciler) operate(ctx context.Context, log *slog.Logger, f family, j *job) (ctrl.Result, verdict, error) {
	if j == nil {
		return ctrl.Result{}, healthy, nil
	}
	leave, err := r.programs.locks.Lock(ctx, reservations.KeyOf(f.pkg))
	if err != nil {
		return ctrl.Result{}, verdict{}, err
	}
	defer leave()
	if err := r.stillWanted(ctx, f); err != nil {
		return ctrl.Result{}, verdict{}, err
	}
	state, err := r.handOver(ctx, f, j)
	if err != nil {
		return ctrl.Result{}, verdict{}, failedProgram(err)
	}
	return r.operated(ctx, log, f, j, state)
}

// handOver takes one step from the programs that run to the one that should.
func (r *revisionReconciler) handOver(ctx context.Context, f family, j *job) (runtime.State, error) {
	who := j.program.Owner
	if left, err := r.stopElsewhere(ctx, j); left != "" || err != nil {
		return leaving(left), err
	}
	if r.kind == v1.ProviderKind {
		if left, err := stopOthers(ctx, j.runtime, who); left != "" || err != nil {
			return leaving(left), err
		}
		return j.runtime.Run(ctx, j.program)
	}
	state, err := j.runtime.Run(ctx, j.program)
	if err != nil || !state.Available && state.HeldBy == "" {
		return state, err
	}
	if fn := f.rev.(*v1.FunctionRevision); state.Available && fn.Status.Endpoint != state.Endpoint {
		// Callers have to know where it answers before the one that they know ends.
		state.Again = leavingPoll
		return state, nil
	}
	others, err := j.runtime.Others(ctx, who)
	if err != nil || len(others) == 0 {
		return state, err
	}
	if rest := overlap - r.now().Sub(f.rev.GetCondition(v1.TypeRuntimeHealthy).LastTransitionTime.Time); state.Available && rest > 0 {
		state.Again = rest
		return state, nil
	}
	if left, err := stopAll(ctx, j.runtime, others); left != "" || err != nil {
		state.Again = leavingPoll
		return state, err
	}
	return state, nil
}

// stopElsewhere ends programs of the package that another runtime runs, as it does
// after the administrator has chosen another one.
func (r *revisionReconciler) stopElsewhere(ctx context.Context, j *job) (left string, err error) {
	all := plan.Requester{Package: j.program.Owner.Package}
	for _, name := range r.programs.used() {
		if other := r.programs.runtimes[name]; other != j.runtime {
			if left, err := stopOthers(ctx, other, all); left != "" || err != nil {
				return left, err
			}
		}
	}
	return "", nil
}

// standDown ends the program of a revision that a person has made inactive without
// another one in its place. Where there is another one, that one ends it.
func (r *revisionReconciler) standDown(ctx context.Context, f family) error {
	by := r.programs.of(r.kind, f.pkg.GetName())
	if by == nil {
		return nil
	}
	leave, err := r.programs.locks.Lock(ctx, reservations.KeyOf(f.pkg))
	if err != nil {
		return err
	}
	defer leave()
	siblings, err := r.revisionsNow(ctx, f.pkg)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(siblings, active) {
		return requeue.ErrStale
	}
	_, err = by.Stop(ctx, f.requester().Revision)
	return err
}

// forgetProgram takes back that the program of a revision runs. Why it did not is kept:
// it is what a person wants to know of a version that was given up.
func (r *revisionReconciler) forgetProgram(f family) {
	if f.rev.RuntimeStatus() == nil || r.programs.choice.Of(r.kind, f.pkg.GetName()) == runtime.External {
		return
	}
	conditions := &f.rev.RevisionStatus().ConditionedStatus
	conditions.RemoveCondition(v1.TypeRuntimeActive)
	if f.rev.GetCondition(v1.TypeRuntimeHealthy).Status == corev1.ConditionTrue {
		conditions.RemoveCondition(v1.TypeRuntimeHealthy)
	}
}

// leaving is the state of a program that waits for another one to end.
func leaving(other string) runtime.State {
	return runtime.State{
		Reason: runtime.ReasonWaiting, Message: fmt.Sprintf("the program of %s has to end before this one may start", other), Again: leavingPoll,
	}
}

// stillWanted looks at the cluster itself, and not at what was watched of it: only the
// program of a revision that is active now may be started.
func (r *revisionReconciler) stillWanted(ctx context.Context, f family) error {
	rev, pkg := v1.NewPackage(r.kind).NewRevision(), v1.NewPackage(r.kind)
	if err := r.readAgain(ctx, f.rev, rev); err != nil {
		return err
	}
	if err := r.readAgain(ctx, f.pkg, pkg); err != nil {
		return err
	}
	if !active(rev) || rev.GetDeletionTimestamp() != nil || pkg.GetDeletionTimestamp() != nil && !leavingPackage(pkg) {
		return requeue.ErrStale
	}
	return nil
}

// stillThere makes sure that an object is the one that was seen, and is not about to
// go. It is read from the API server into live.
func (w *world) stillThere(ctx context.Context, seen, live client.Object) error {
	if err := w.readAgain(ctx, seen, live); err != nil {
		return err
	}
	if live.GetDeletionTimestamp() != nil {
		return requeue.ErrStale
	}
	return nil
}

// readAgain reads an object from the API server into live, and makes sure that it is
// the one that was seen.
func (w *world) readAgain(ctx context.Context, seen, live client.Object) error {
	err := w.live.Get(ctx, client.ObjectKeyFromObject(seen), live)
	switch {
	case apierrors.IsNotFound(err):
		return requeue.ErrStale
	case err != nil:
		return fmt.Errorf("look at %s again: %w", seen.GetName(), err)
	case live.GetUID() != seen.GetUID():
		return requeue.ErrStale
	}
	return nil
}

// operated writes down how the program does.
func (r *revisionReconciler) operated(ctx context.Context, log *slog.Logger, f family, j *job, state runtime.State) (ctrl.Result, verdict, error) {
	now := metav1.NewTime(r.now())
	was := f.rev.GetCondition(v1.TypeRuntimeHealthy)
	f.rev.SetConditions(now, activity(j.program))
	if fn, ok := f.rev.(*v1.FunctionRevision); ok && state.Available {
		fn.Status.Endpoint = state.Endpoint
	}
	if c, ours := runtimeHealth(state, was); ours {
		f.rev.SetConditions(now, c)
	}
	if state.Available {
		if was.Status != corev1.ConditionTrue {
			log.InfoContext(ctx, "the program runs", "image", j.program.Image())
		}
		if j.program.AwaitingActivation {
			state.Again = awaitingPoll
		}
		return ctrl.Result{RequeueAfter: state.Again}, healthy, nil
	}
	result := ctrl.Result{RequeueAfter: cmp.Or(state.Again, r.patience(f.rev))}
	return result, verdict{reason: v1.ConditionReason(state.Reason), message: state.Message}, nil
}

// patience is when to look again at a program that is not available. What its pods say
// is not watched. The longer it has been so, the less often one looks.
func (r *revisionReconciler) patience(rev v1.PackageRevision) time.Duration {
	const first, last = 2 * time.Second, time.Minute
	since := rev.GetCondition(v1.TypeRuntimeHealthy).LastTransitionTime
	return requeue.Jitter(min(last, max(first, r.now().Sub(since.Time)/4)))
}

func activity(p runtime.Program) v1.Condition {
	if p.AwaitingActivation {
		return v1.RuntimeAwaitingActivation()
	}
	return v1.RuntimeActive()
}

// runtimeHealth is the condition for a state. What somebody else has reported is his.
func runtimeHealth(s runtime.State, was v1.Condition) (c v1.Condition, ours bool) {
	switch {
	case s.Reported && s.Reason == runtime.ReasonNotReported && !s.Available:
		return v1.RuntimeUnknownHealth(s.Message), true
	case s.Reported:
		return was, false
	case s.Available:
		return v1.RuntimeHealthy(), true
	}
	return v1.RuntimeUnhealthy(s.Message), true
}
