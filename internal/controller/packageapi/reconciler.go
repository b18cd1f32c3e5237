package packageapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/xpkg-dev/xpkg/apis/crds"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/controller/logging"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/controller/watch"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Reconciler restores the CRDs of the package API when another program changes or deletes them. The CRDs of
// another package manager lack fields of the status that this one needs, so that every package would fail.
type Reconciler struct {
	Cluster *apply.Cluster
	Events  events.EventRecorder

	crds *desired.Objects
	// written has the generations of the CRDs after the last write of this process.
	written map[plan.Ref]plan.Written
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, log *slog.Logger) error {
	own, err := crds.Packages()
	if err != nil {
		return err
	}
	if r.crds, err = desired.Definitions(own); err != nil {
		return err
	}
	r.written = map[plan.Ref]plan.Written{}
	names := map[string]bool{}
	for _, ref := range r.crds.Refs() {
		names[ref.Name] = true
	}
	isOwn := predicate.NewPredicateFuncs(func(o client.Object) bool { return names[o.GetName()] })
	changed := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			e.ObjectNew.GetAnnotations()[plan.ContentDigestAnnotation] != e.ObjectOld.GetAnnotations()[plan.ContentDigestAnnotation]
	}}
	crd := watch.Metadata(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	err = ctrl.NewControllerManagedBy(mgr).Named("packageapi").
		WatchesMetadata(crd, &handler.EnqueueRequestForObject{}, builder.WithPredicates(isOwn, changed)).
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
	live, err := r.Cluster.Metadata(ctx, []plan.Ref{d.Ref})
	if err != nil {
		return requeue.OnError(ctx, err)
	}
	l, exists := live[d.Ref]
	change := create(d)
	if exists {
		if l.Deleting || !r.isChanged(d, l) {
			return ctrl.Result{}, nil
		}
		change = restore(d, l)
	}
	written, err := r.Cluster.Run(ctx, plan.Plan{Changes: []plan.Change{change}}, r.crds.Content)
	if errors.Is(err, apply.ErrMoved) {
		return requeue.Soon(), nil
	}
	if err != nil {
		return requeue.OnError(ctx, err)
	}
	r.written[d.Ref] = written[d.Ref]
	if !exists || written[d.Ref].Generation != l.Generation {
		const message = "another program changed or deleted a CRD of the package API, so that packages could not be reconciled; the manager restored it"
		logging.FromContext(ctx).WarnContext(ctx, message, "crd", d.Ref.Name)
		o := watch.Metadata(d.Ref.GroupVersionKind())
		o.SetName(d.Ref.Name)
		o.SetUID(written[d.Ref].UID)
		r.Events.Eventf(o, nil, corev1.EventTypeWarning, "PackageAPIRestored", "Restore", "%s", message)
	}
	return ctrl.Result{}, nil
}

// isChanged reports whether another program may have changed the content of a CRD since it was last written.
func (r *Reconciler) isChanged(d plan.Desired, l plan.Live) bool {
	if l.Annotations[plan.ContentDigestAnnotation] != d.Digest {
		return true
	}
	if w, known := r.written[d.Ref]; known {
		return w.Generation != l.Generation || w.UID != l.UID
	}
	return l.OthersWrote
}
