// Package fences installs the fences of the manager, and restores them when another client deletes them.
package fences

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/xpkg-dev/xpkg/internal/controller/logging"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/fence"
	"github.com/xpkg-dev/xpkg/internal/serverside"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Reconciler maintains fences. A manager writes its version of each fence once, when it starts.
// An administrator may change a fence afterwards, and managers of two versions do not undo each
// other's changes.
type Reconciler struct {
	// Client writes the fences, and reads them from a cache.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Fences are the fences of the manager.
	Fences []fence.Fence
	// Missing are the names of those that Install could not write.
	Missing []string
}

// Install writes the fences. It leaves out the ones that the manager may not write, and returns false if the API server
// does not serve admission policies, or if the manager may not watch them. The manager then works without the fences.
func (r *Reconciler) Install(ctx context.Context, log *slog.Logger) (isWatchable bool, err error) {
	isWatchable = true
	var live state
	for _, list := range []client.ObjectList{&live.policies, &live.bindings} {
		switch err := r.Live.List(ctx, list); {
		case IsUnavailable(err):
			log.WarnContext(ctx,
				"the policies of the manager cannot be watched, so the manager does not restore them when another client deletes them; "+
					"apply the manifests of `xpkg bootstrap` on Kubernetes 1.30 or later", "error", err.Error())
			isWatchable = false
		case err != nil:
			return false, err
		}
	}
	for _, f := range r.Fences {
		err := r.apply(ctx, f, live)
		if err != nil && !IsUnavailable(err) {
			return false, err
		}
		if err != nil {
			r.Missing = append(r.Missing, f.Name)
			log.WarnContext(ctx, "the policy that "+f.Purpose+" cannot be installed: without it, "+f.Risk+"; "+
				"apply the manifests of `xpkg bootstrap` on Kubernetes 1.30 or later", "policy", f.Name, "error", err.Error())
		}
	}
	return isWatchable, nil
}

// state is the part of the policies and bindings of a cluster that is known.
type state struct {
	policies admissionv1.ValidatingAdmissionPolicyList
	bindings admissionv1.ValidatingAdmissionPolicyBindingList
}

// isInForce reports whether a fence is known to be in force.
func (s state) isInForce(f fence.Fence) bool {
	p := slices.IndexFunc(s.policies.Items, func(p admissionv1.ValidatingAdmissionPolicy) bool { return p.Name == f.Name })
	b := slices.IndexFunc(
		s.bindings.Items, func(b admissionv1.ValidatingAdmissionPolicyBinding) bool { return b.Name == f.Name },
	)
	return p >= 0 && b >= 0 && f.IsInForce(&s.policies.Items[p], &s.bindings.Items[b])
}

// IsUnavailable reports whether the API server does not serve admission policies, or does not allow the request.
func IsUnavailable(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err)
}

// Kinds returns a policy and a binding.
func Kinds() []client.Object {
	return []client.Object{&admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyBinding{}}
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, log *slog.Logger) error {
	deleted := predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
	isFence := predicate.NewPredicateFuncs(func(o client.Object) bool { return r.index(o.GetName()) >= 0 })
	b := ctrl.NewControllerManagedBy(mgr).Named("fences").WithOptions(requeue.OneAtATime(log))
	for _, kind := range Kinds() {
		b = b.Watches(kind, &handler.EnqueueRequestForObject{}, builder.WithPredicates(isFence, deleted))
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("controller of the fences: %w", err)
	}
	return nil
}

// index returns the index of the fence with a name, or -1.
func (r *Reconciler) index(name string) int {
	return slices.IndexFunc(r.Fences, func(f fence.Fence) bool { return f.Name == name })
}

// Reconcile restores a fence if a part of it is missing.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	i := r.index(req.Name)
	if i < 0 {
		return ctrl.Result{}, nil
	}
	f := r.Fences[i]
	for _, kind := range Kinds() {
		err := r.Client.Get(ctx, req.NamespacedName, kind)
		if apierrors.IsNotFound(err) {
			logging.FromContext(ctx).WarnContext(ctx, "another client deleted the policy that "+f.Purpose+
				"; the manager restores it", "policy", req.Name)
			err = r.apply(ctx, f, state{})
		}
		if err != nil {
			return requeue.OnError(ctx, err)
		}
	}
	return ctrl.Result{}, nil
}

// apply writes the policy of a fence and its binding, unless the fence is known to be in force. With a server-side
// apply, a manager with the permission to create objects of this name only can create them.
func (r *Reconciler) apply(ctx context.Context, f fence.Fence, live state) error {
	if live.isInForce(f) {
		return nil
	}
	return write(ctx, r.Client, f)
}

// write writes the policy of a fence and its binding.
func write(ctx context.Context, c client.Client, f fence.Fence) error {
	policy, binding := f.Objects()
	for _, o := range []client.Object{policy, binding} {
		if err := serverside.Apply(ctx, c, o, plan.FieldManager, client.ForceOwnership); err != nil {
			return fmt.Errorf("write %s %s: %w", o.GetObjectKind().GroupVersionKind().Kind, f.Name, err)
		}
	}
	return nil
}
