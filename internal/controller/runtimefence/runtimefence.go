// Package runtimefence installs the fence of package runtimes, and restores it when another client deletes it.
package runtimefence

import (
	"context"
	"fmt"
	"log/slog"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/xpkg-dev/xpkg/internal/controller/logging"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/controller/watch"
	"github.com/xpkg-dev/xpkg/internal/fence"
	"github.com/xpkg-dev/xpkg/internal/serverside"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Reconciler maintains the fence. A manager writes its version of the fence once, when it starts.
// An administrator may change the fence afterwards, and managers of two versions do not undo each
// other's changes.
type Reconciler struct {
	// Client writes the fence, and reads its metadata from a cache that contains Kinds.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Manager has the names of the objects that runtimes must not write.
	Manager fence.Manager
}

// Install writes the fence. It returns false if the API server does not serve admission policies,
// or if the manager lacks the permission to write them. The manager then works without the fence.
func (r *Reconciler) Install(ctx context.Context, log *slog.Logger) (bool, error) {
	err := r.apply(ctx)
	if err == nil {
		return true, nil
	}
	if !meta.IsNoMatchError(err) && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
		return false, err
	}
	log.WarnContext(ctx, "the policy that protects the manager from package runtimes cannot be installed: a runtime may take over the manager; "+
		"apply the manifests of `xpkg bootstrap` on Kubernetes 1.30 or later", "policy", fence.RuntimesName, "error", err.Error())
	return false, nil
}

// Kinds returns the metadata of the policy and of its binding.
func Kinds() []*metav1.PartialObjectMetadata {
	return []*metav1.PartialObjectMetadata{
		watch.Metadata(admissionv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicy")),
		watch.Metadata(admissionv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicyBinding")),
	}
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, log *slog.Logger) error {
	deleted := predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
	isFence := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == fence.RuntimesName })
	b := ctrl.NewControllerManagedBy(mgr).Named("runtimefence").WithOptions(requeue.OneAtATime(log))
	for _, kind := range Kinds() {
		b = b.WatchesMetadata(kind, &handler.EnqueueRequestForObject{}, builder.WithPredicates(isFence, deleted))
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("controller of the fence of runtimes: %w", err)
	}
	return nil
}

// Reconcile restores the fence if a part of it is missing.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	for _, kind := range Kinds() {
		err := r.Client.Get(ctx, req.NamespacedName, kind)
		if apierrors.IsNotFound(err) {
			logging.FromContext(ctx).WarnContext(ctx, "another client deleted the policy that protects the manager from package runtimes; the manager restores it", "policy", req.Name)
			err = r.apply(ctx)
		}
		if err != nil {
			return requeue.OnError(ctx, err)
		}
	}
	return ctrl.Result{}, nil
}

// apply writes the policy and its binding, unless they are up to date. With a server-side apply, a manager with the
// permission to create objects of this name only can create them.
func (r *Reconciler) apply(ctx context.Context) error {
	policy, binding := fence.Runtimes(r.Manager)
	livePolicy, liveBinding := &admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyBinding{}
	for _, part := range []struct {
		desired, live client.Object
		isCurrent     func() bool
	}{
		{policy, livePolicy, func() bool { return equality.Semantic.DeepEqual(policy.Spec, livePolicy.Spec) }},
		{binding, liveBinding, func() bool { return equality.Semantic.DeepEqual(binding.Spec, liveBinding.Spec) }},
	} {
		o := part.desired
		if err := r.Live.Get(ctx, client.ObjectKeyFromObject(o), part.live); err == nil && part.isCurrent() {
			continue
		}
		if err := serverside.Apply(ctx, r.Client, o, plan.FieldManager, client.ForceOwnership); err != nil {
			return fmt.Errorf("write %s %s: %w", o.GetObjectKind().GroupVersionKind().Kind, o.GetName(), err)
		}
	}
	return nil
}
