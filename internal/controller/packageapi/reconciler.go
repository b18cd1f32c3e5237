package packageapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/controller/contention"
	"github.com/xpkg-dev/xpkg/internal/controller/logging"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/controller/status"
	"github.com/xpkg-dev/xpkg/internal/controller/watch"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Reconciler restores the CRDs of the package API when another program changes or deletes them. The
// CRDs of another package manager lack status fields that this manager needs, so every package
// would fail.
type Reconciler struct {
	Cluster *apply.Cluster
	// Cache reads the metadata of CRDs from the cache.
	Cache client.Reader
	// Installed is the result of Install for the same cluster.
	Installed Installed
	Events    events.EventRecorder
	// Overwritten receives the CRDs that the controller has stopped restoring.
	Overwritten *Overwritten

	crds  *desired.Objects
	specs *specs
	kinds map[plan.Ref]string
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, log *slog.Logger) error {
	own, err := ownCRDs(r.Installed.FirstGeneration)
	if err != nil {
		return err
	}
	if r.crds, err = desired.Definitions(own); err != nil {
		return err
	}
	if r.specs, err = newSpecs(r.crds); err != nil {
		return err
	}
	r.kinds = map[plan.Ref]string{}
	names := map[string]bool{}
	for i, ref := range r.crds.Refs() {
		names[ref.Name], r.kinds[ref] = true, own[i].Spec.Names.Kind
	}
	isOwn := predicate.NewPredicateFuncs(func(o client.Object) bool { return names[o.GetName()] })
	changed := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			e.ObjectNew.GetAnnotations()[plan.ContentDigestAnnotation] !=
				e.ObjectOld.GetAnnotations()[plan.ContentDigestAnnotation]
	}}
	err = ctrl.NewControllerManagedBy(mgr).Named("packageapi").
		WatchesMetadata(watch.Definitions(), &handler.EnqueueRequestForObject{}, builder.WithPredicates(isOwn, changed)).
		WithOptions(requeue.OneAtATime(log)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("controller of the package API: %w", err)
	}
	return nil
}

// Reconcile restores one CRD.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	for _, d := range r.crds.Desired() {
		if d.Ref.Name == req.Name {
			return r.reconcile(ctx, d)
		}
	}
	return ctrl.Result{}, nil
}

func (r *Reconciler) reconcile(ctx context.Context, d plan.Desired) (ctrl.Result, error) {
	if verified, err := r.isVerified(ctx, d); verified || err != nil {
		return ctrl.Result{}, err
	}
	o, exists, err := r.Cluster.Object(ctx, d.Ref)
	if err != nil {
		return requeue.OnError(ctx, err)
	}
	change := creation(d)
	if exists {
		if o.Deleting {
			return ctrl.Result{}, nil
		}
		if r.specs.isWritten(d, o) {
			r.Overwritten.set(ctx, r.kinds[d.Ref], nil)
			return ctrl.Result{}, nil
		}
		change = restoration(d, o.Live)
	}
	written, err := r.Cluster.Run(ctx, plan.Plan{Changes: []plan.Change{change}}, r.crds.Content)
	if errors.Is(err, apply.ErrMoved) {
		return requeue.Soon(), nil
	}
	if stop, ok := contention.StopOf(err); ok {
		r.Overwritten.set(ctx, r.kinds[d.Ref], overwritten(d.Ref.Name, stop))
	}
	if err != nil {
		return requeue.OnError(ctx, err)
	}
	r.reportRestored(ctx, d.Ref, o, written[d.Ref])
	return ctrl.Result{}, r.accept(ctx, d.Ref, written[d.Ref])
}

// isVerified reports whether the content of a CRD was compared by Install, and has not changed since.
func (r *Reconciler) isVerified(ctx context.Context, d plan.Desired) (bool, error) {
	verified, ok := r.Installed.verified[d.Ref]
	if !ok {
		return false, nil
	}
	o := watch.Metadata(d.Ref.GroupVersionKind())
	if err := r.Cache.Get(ctx, client.ObjectKey{Name: d.Ref.Name}, o); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return o.GetUID() == verified.UID && o.GetGeneration() == verified.Generation &&
		o.GetAnnotations()[plan.ContentDigestAnnotation] == d.Digest, nil
}

// accept records the spec that the API server stored for a write, and clears the failure of the
// CRD, unless another program has written since.
func (r *Reconciler) accept(ctx context.Context, ref plan.Ref, w plan.Written) error {
	o, exists, err := r.Cluster.Object(ctx, ref)
	if err != nil || !exists || o.UID != w.UID || o.Generation != w.Generation {
		return err
	}
	r.specs.accept(o)
	r.Overwritten.set(ctx, r.kinds[ref], nil)
	return nil
}

// reportRestored reports a restored CRD, unless the write changed nothing.
func (r *Reconciler) reportRestored(ctx context.Context, ref plan.Ref, before apply.Object, w plan.Written) {
	if before.UID == w.UID && before.Generation == w.Generation {
		return
	}
	message := contention.Change{Writer: before.Writer}.Client() +
		" changed a CRD of the package API, so that packages could not be reconciled; the manager restored it"
	if before.UID == "" {
		message = "another program deleted a CRD of the package API; the manager restored it"
	}
	r.report(ctx, ref, w.UID, "PackageAPIRestored", message)
}

// report logs a warning about a CRD and records it as an event.
func (r *Reconciler) report(ctx context.Context, ref plan.Ref, uid types.UID, reason, message string) {
	logging.FromContext(ctx).WarnContext(ctx, message, "crd", ref.Name)
	o := watch.Metadata(ref.GroupVersionKind())
	o.SetName(ref.Name)
	o.SetUID(uid)
	r.Events.Eventf(o, nil, corev1.EventTypeWarning, reason, "Restore", "%s", status.Clip(message))
}
