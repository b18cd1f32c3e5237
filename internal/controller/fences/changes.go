package fences

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/changepolicy"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/fence"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Changes keeps the fence of changes in force while a ChangePolicy exists, and reports in its status whether the policy
// is enforced.
type Changes struct {
	// Client writes the fence and the status, and reads them from a cache.
	Client client.Client
	// Fence is the fence of changes, or nil if the manager cannot maintain one.
	Fence *fence.Fence

	// written is the time at which it was written last.
	written time.Time
}

// SetupWithManager registers the controller.
func (r *Changes) SetupWithManager(mgr ctrl.Manager, log *slog.Logger) error {
	b := ctrl.NewControllerManagedBy(mgr).Named("changepolicies").WithOptions(requeue.OneAtATime(log)).
		For(&v1alpha1.ChangePolicy{}, builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	if r.Fence != nil {
		isFence := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == r.Fence.Name })
		policy := reconcile.Request{NamespacedName: client.ObjectKey{Name: v1alpha1.ChangePolicyName}}
		enqueue := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
			return []reconcile.Request{policy}
		})
		for _, kind := range Kinds() {
			b = b.Watches(kind, enqueue, builder.WithPredicates(isFence))
		}
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("controller of the ChangePolicy: %w", err)
	}
	return nil
}

// settles is the time after which API servers apply a policy that is written: they load policies each second.
const settles = 3 * time.Second

// Reconcile writes the fence, or deletes it with the policy.
func (r *Changes) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	p := &v1alpha1.ChangePolicy{}
	var settled time.Duration
	err := r.Client.Get(ctx, req.NamespacedName, p)
	switch {
	case apierrors.IsNotFound(err) && r.Fence != nil:
		err = r.release(ctx)
	case err == nil:
		settled, err = r.enforce(ctx, p)
	}
	if client.IgnoreNotFound(err) != nil {
		return requeue.OnError(ctx, err)
	}
	return ctrl.Result{RequeueAfter: settled}, nil
}

// release deletes the fence.
func (r *Changes) release(ctx context.Context) error {
	for _, o := range slices.Backward(Kinds()) { // The binding first.
		err := r.Client.Get(ctx, client.ObjectKey{Name: r.Fence.Name}, o)
		if err == nil {
			err = r.Client.Delete(ctx, o)
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete the policy %s: %w", r.Fence.Name, err)
		}
	}
	return nil
}

// enforce brings the fence into force, and reports the state of the policy. It returns the time after which the API
// server applies the fence, if it was just written.
func (r *Changes) enforce(ctx context.Context, p *v1alpha1.ChangePolicy) (settled time.Duration, err error) {
	is := metav1.Condition{
		Type: v1alpha1.TypeEnforced, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonInForce,
		ObservedGeneration: p.Generation, Message: "packages are changed by transactions, which follow the policy",
	}
	err = r.guard(ctx)
	if settled = settles - time.Since(r.written); settled > 0 {
		is.Status, is.Reason = metav1.ConditionFalse, v1alpha1.ReasonUnguarded
		is.Message = "the API server loads the admission policy that denies changes by other clients"
	}
	if err != nil {
		is.Status, is.Reason = metav1.ConditionFalse, v1alpha1.ReasonUnguarded
		is.Message = "transactions follow the policy, and other clients can still change packages: " + err.Error()
	}
	if IsUnavailable(err) || r.Fence == nil {
		err = nil // It stays so until the manager starts with other permissions.
	}
	if invalid := changepolicy.Check(p.Spec); invalid != nil {
		is.Status, is.Reason = metav1.ConditionFalse, v1alpha1.ReasonInvalid
		is.Message = "no transaction starts: " + invalid.Error()
	}
	before := p.DeepCopy()
	if apimeta.SetStatusCondition(&p.Status.Conditions, is) {
		patch := client.MergeFrom(before)
		if err := r.Client.Status().Patch(ctx, p, patch, client.FieldOwner(plan.FieldManager)); err != nil {
			return 0, err
		}
	}
	return max(settled, 0), err
}

// guard writes the fence, unless it is in force.
func (r *Changes) guard(ctx context.Context) error {
	if r.Fence == nil {
		return errors.New("the manager does not maintain admission policies here")
	}
	policy, binding := &admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyBinding{}
	key := client.ObjectKey{Name: r.Fence.Name}
	if r.Client.Get(ctx, key, policy) == nil && r.Client.Get(ctx, key, binding) == nil &&
		r.Fence.IsInForce(policy, binding) {
		return nil
	}
	err := write(ctx, r.Client, *r.Fence)
	if err == nil {
		r.written = time.Now()
	}
	return err
}
