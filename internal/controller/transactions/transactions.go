// Package transactions carries out Transactions: changes of several packages that are made as a whole.
//
// One reconciliation carries out one transaction from its start to its end, and several of them run at the same time.
// The status keeps what is needed to continue: the packages before the first write, and the phase. A package that the
// transaction has written has its name in an annotation, so that a manager that is started again knows which steps are
// carried out.
package transactions

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/controller/logging"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/fence"
	"github.com/xpkg-dev/xpkg/internal/operation"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// finalizer keeps a transaction until it has ended.
const finalizer = "xpkg.dev/transaction"

// pause is the interval between checks of a transaction that waits for another one.
const pause = time.Second

// Reconciler carries out transactions.
type Reconciler struct {
	// Client reads from the API server, and writes packages and statuses.
	Client client.Client
	// Cache has the transactions, the ChangePolicy, and the packages.
	Cache client.Client
	// Objects reads the objects of packages.
	Objects *apply.Cluster
	// NewPlanner returns a planner for one transaction. It reads from the API server.
	NewPlanner func() *planner.Planner
	// Consents fails while the fences of transactions and of consents are not in force: any user who may create
	// transactions could make changes that the user may not make otherwise.
	Consents func(ctx context.Context) error
	// Held knows the packages that transactions may change.
	Held *Held
	// Guard fails while the manager must not change packages.
	Guard func(ctx context.Context) error
	// Approvals fails while the fence of approvals is not in force: any user could approve in the name of others.
	Approvals func(ctx context.Context) error
	// Now is the clock of the ChangePolicy.
	Now func() time.Time

	// starts serializes the decisions which transactions run at the same time.
	starts sync.Mutex
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, log *slog.Logger) error {
	changed := predicate.Or[client.Object](predicate.GenerationChangedPredicate{},
		predicate.NewPredicateFuncs(func(o client.Object) bool {
			return o.GetDeletionTimestamp() != nil
		}), predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
			was, is := e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()
			return was[fence.AnnotationApprovals] != is[fence.AnnotationApprovals]
		}})
	return ctrl.NewControllerManagedBy(mgr).Named("transactions").
		For(&v1alpha1.Transaction{}, builder.WithPredicates(changed)).
		Watches(&v1alpha1.ChangePolicy{}, handler.EnqueueRequestsFromMapFunc(r.awaiting),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(requeue.Options(log)).Complete(r)
}

// Reconcile carries out a transaction from its start, or from where a manager that has stopped has left it.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	t := &v1alpha1.Transaction{}
	if err := r.Cache.Get(ctx, req.NamespacedName, t); err == nil {
		if t.Status.Phase.IsFinal() && !controllerutil.ContainsFinalizer(t, finalizer) {
			return ctrl.Result{}, nil
		}
		if waits, err := r.stillWaits(ctx, t); waits > 0 || err != nil {
			return ctrl.Result{RequeueAfter: waits}, err
		}
	}
	if err := r.Client.Get(ctx, req.NamespacedName, t); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if t.Status.Phase.IsFinal() || t.DeletionTimestamp != nil && t.Status.StartTime == nil {
		return ctrl.Result{}, r.release(ctx, t)
	}
	if err := r.Guard(ctx); err != nil {
		return ctrl.Result{RequeueAfter: requeue.Jitter(10 * time.Second)},
			r.save(ctx, t, func(s *v1alpha1.TransactionStatus) { setProgress(s, err.Error()) })
	}
	if controllerutil.AddFinalizer(t, finalizer) {
		if err := r.patch(ctx, t, map[string]any{"metadata": map[string]any{
			"finalizers": t.Finalizers, "resourceVersion": t.ResourceVersion,
		}}); err != nil {
			return ctrl.Result{}, err
		}
	}
	run := &run{Reconciler: r, t: t, reporter: &reporter{}}
	run.reporter.report = run.report(ctx)
	waits, err := run.carryOut(ctx)
	switch {
	case ctx.Err() != nil: // The next manager continues.
		return ctrl.Result{}, nil
	case err != nil:
		logging.FromContext(ctx).ErrorContext(ctx, "cannot continue a transaction", "transaction", t.Name, "error", err)
		return ctrl.Result{}, err
	case waits > 0:
		return ctrl.Result{RequeueAfter: waits}, nil
	}
	return ctrl.Result{}, errors.Join(r.release(ctx, t), r.prune(ctx))
}

// kept is the number of transactions of commands that are kept after their end.
const kept = 100

// prune deletes the oldest transactions of commands that have ended.
func (r *Reconciler) prune(ctx context.Context) error {
	var list v1alpha1.TransactionList
	if err := r.Cache.List(ctx, &list, client.MatchingLabels{operation.LabelCommand: "true"}); err != nil {
		return err
	}
	ended := slices.DeleteFunc(
		list.Items, func(t v1alpha1.Transaction) bool { return !t.Status.Phase.IsFinal() || t.Status.CompletionTime == nil },
	)
	slices.SortFunc(ended, func(a, b v1alpha1.Transaction) int {
		return b.Status.CompletionTime.Compare(a.Status.CompletionTime.Time)
	})
	for i := kept; i < len(ended); i++ {
		if err := r.Client.Delete(ctx, &ended[i], client.Preconditions{
			UID: &ended[i].UID,
		}); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// release removes the finalizer of a transaction that has ended.
func (r *Reconciler) release(ctx context.Context, t *v1alpha1.Transaction) error {
	if !controllerutil.RemoveFinalizer(t, finalizer) {
		return nil
	}
	finalizers := t.Finalizers
	if finalizers == nil {
		finalizers = []string{}
	}
	err := r.patch(ctx, t, map[string]any{"metadata": map[string]any{
		"finalizers": finalizers, "resourceVersion": t.ResourceVersion,
	}})
	return client.IgnoreNotFound(err)
}

// run is one reconciliation of a transaction.
type run struct {
	*Reconciler
	t        *v1alpha1.Transaction
	reporter *reporter
}

// operation returns the operation of the transaction.
func (r *run) operation() operation.Operation {
	pl := r.NewPlanner()
	o := operation.Operation{
		Engine: &operation.Engine{
			Client: r.Client, Planner: pl, Frontend: pl.Frontend, Objects: r.Objects, Reporter: r.reporter,
		},
		Wait: r.timeout(), Transaction: operation.MarkOf(r.t), Atomic: !r.t.Keeps(), NeedsPlan: true,
		OnlyOrphans: slices.ContainsFunc(r.t.Spec.Remove, func(p v1alpha1.RemovedPackage) bool { return p.OnlyOrphan }),
	}
	if o.Wait > 0 {
		o.Deadline = r.deadline()
	}
	return o
}

// timeout returns the time in which the packages must be healthy. The ChangePolicy can only watch packages that are.
func (r *run) timeout() time.Duration {
	if d := r.t.Spec.Deadline; d == nil || d.Duration == 0 && r.t.Status.Policy.WatchTime() > 0 {
		return operation.TransactionDeadline
	}
	return r.t.Spec.Deadline.Duration
}

// shortest is the time for which a transaction without a time to wait repeats what fails temporarily.
const shortest = 10 * time.Second

// deadline returns the time until which a temporary failure is retried, and until which the packages must be healthy.
func (r *run) deadline() time.Time {
	started := time.Now()
	if r.t.Status.StartTime != nil {
		started = r.t.Status.StartTime.Time
	}
	return started.Add(cmp.Or(r.timeout(), shortest))
}

// carryOut carries out the transaction. It returns the time after which it continues, if the transaction waits. An
// error means that it cannot continue now.
func (r *run) carryOut(ctx context.Context) (waits time.Duration, err error) {
	switch r.t.Status.Phase {
	case v1alpha1.Watching:
		if r.t.Status.HealthySince != nil {
			return r.watch(ctx)
		}
		return r.resume(ctx)
	case v1alpha1.Applying:
		return r.resume(ctx)
	case v1alpha1.Returning:
		return 0, r.undo(ctx)
	}
	if waits, err = r.start(ctx); err != nil || waits > 0 {
		return waits, err
	}
	o := r.operation()
	steps, err := r.plan(ctx, o)
	if err == nil {
		waits, err = r.begin(ctx, steps)
	}
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case err != nil && isTemporary(err) && time.Now().Before(r.deadline()):
		return requeue.Jitter(pause),
			r.save(ctx, r.t, func(s *v1alpha1.TransactionStatus) { s.Message = "trying again: " + err.Error() })
	case err != nil:
		return 0, r.finish(ctx, v1alpha1.Refused, err)
	case waits > 0:
		return waits, nil
	}
	// What the ChangePolicy asks is known now.
	return r.apply(ctx, r.operation(), steps)
}

// isTemporary reports whether a failure before the first write can be gone at the next attempt: the API server or a
// registry does not respond.
func isTemporary(err error) bool {
	return errors.Is(err, apiserver.ErrCluster) || errcode.From(err).Code.Class.Name == errcode.Unavailable.Name
}

// resume continues a transaction that another manager, or an earlier attempt, has begun.
func (r *run) resume(ctx context.Context) (waits time.Duration, err error) {
	o := r.operation()
	steps, err := r.steps(ctx, o)
	if err == nil {
		err = o.PlanTransaction(ctx, steps)
	}
	if err == nil {
		err = operation.CheckRecord(r.t.Status.Packages, steps)
	}
	if err != nil {
		return 0, r.fail(ctx, err)
	}
	return r.apply(ctx, o, steps)
}

// apply writes the packages, and waits until all of them are healthy.
func (r *run) apply(
	ctx context.Context, o operation.Operation, steps []*operation.Step,
) (waits time.Duration, err error) {
	r.Held.hold(ctx, r.t.Name, operation.Changed(steps))
	done, err := o.Write(ctx, steps)
	if err != nil {
		return 0, r.fail(ctx, err)
	}
	if o.Wait > 0 {
		if err := r.save(ctx, r.t, func(s *v1alpha1.TransactionStatus) { s.Phase = v1alpha1.Watching }); err != nil {
			return 0, err
		}
	}
	if done, err = o.Await(ctx, done); done == nil && err != nil {
		return 0, r.fail(ctx, err)
	}
	r.reporter.flush()
	if saved := r.save(ctx, r.t, func(s *v1alpha1.TransactionStatus) {
		for _, d := range done {
			setResult(s, d.Object.PackageKind(), d.Object.GetName(), d.Word)
		}
		if s.Policy.WatchTime() > 0 {
			s.HealthySince = new(metav1.NewTime(r.Now()))
			describe(s, err)
			return
		}
		end(s, v1alpha1.Succeeded, err)
	}); saved != nil || r.t.Status.Phase.IsFinal() {
		return 0, saved
	}
	return r.watch(ctx)
}

// fail handles a failure after the first write.
func (r *run) fail(ctx context.Context, why error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case isTemporary(why) && time.Now().Before(r.deadline()):
		return why
	case r.t.Keeps():
		return r.finish(ctx, v1alpha1.Failed, why)
	}
	if err := r.save(ctx, r.t, func(s *v1alpha1.TransactionStatus) {
		s.Phase = v1alpha1.Returning
		describe(s, why)
	}); err != nil {
		return err
	}
	return r.undo(ctx)
}

// undo returns the packages to their former state.
func (r *run) undo(ctx context.Context) error {
	why := operation.FailureOf(r.t.Status)
	complete, failed := r.operation().Return(ctx, r.t.Status.Packages, why)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case isTemporary(failed) && !errors.Is(failed, errcode.From(why).Code):
		return failed
	case complete:
		return r.finish(ctx, v1alpha1.Returned, failed)
	}
	return r.finish(ctx, v1alpha1.Failed, failed)
}

// finish ends the transaction with a failure.
func (r *run) finish(ctx context.Context, phase v1alpha1.Phase, why error) error {
	r.reporter.flush()
	return r.save(ctx, r.t, func(s *v1alpha1.TransactionStatus) { end(s, phase, why) })
}

func end(s *v1alpha1.TransactionStatus, phase v1alpha1.Phase, why error) {
	s.Phase, s.CompletionTime, s.Holds, s.Message = phase, new(metav1.Now()), nil, ""
	describe(s, why)
}

// describe writes an error to a status.
func describe(s *v1alpha1.TransactionStatus, why error) {
	if why == nil {
		return
	}
	failed := errcode.From(why)
	s.Reason, s.Message, s.Advice = failed.Code.Name, failed.Error(), failed.Do
}

func setResult(s *v1alpha1.TransactionStatus, kind, name, result string) {
	for i := range s.Packages {
		if p := &s.Packages[i]; p.Kind == kind && p.Name == name {
			p.Result = result
		}
	}
}
