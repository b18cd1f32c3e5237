package compositeroles

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/controller/watch"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

const (
	// workers bounds the number of XRDs, with their schemas, in memory.
	workers = 8
	// roleDelay is the maximum delay until the authorizer of an API server uses a written role.
	roleDelay = time.Second
)

// SetupWithManager registers the controller. It watches the metadata of XRDs and of roles, which the controllers of
// revisions watch too.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, log *slog.Logger) error {
	options := requeue.Options(log)
	options.MaxConcurrentReconciles = workers
	b := ctrl.NewControllerManagedBy(mgr).Named("compositeroles").
		WatchesMetadata(
			watch.Metadata(definition), &handler.EnqueueRequestForObject{}, builder.WithPredicates(specChanged()),
		).
		WithOptions(options)
	for _, kind := range []string{"ClusterRole", "ClusterRoleBinding"} {
		b = b.WatchesMetadata(watch.Metadata(rbacv1.SchemeGroupVersion.WithKind(kind)), r.onRole())
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("controller of the roles of XRDs: %w", err)
	}
	return nil
}

// specChanged admits the XRDs whose specification changed, and not their statuses, which core writes.
func specChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() || e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration()
		},
	}
}

// onRole enqueues the XRD of a role that was changed or deleted. A role or binding without a controller may grant
// permissions to the manager, so it enqueues the XRDs that wait for permissions.
func (r *Reconciler) onRole() handler.EventHandler {
	request := func(name string) reconcile.Request {
		return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
	}
	granted := func(o client.Object, q watch.Queue) {
		if metav1.GetControllerOf(o) != nil {
			return
		}
		for _, name := range r.waiting() {
			q.AddAfter(request(name), roleDelay)
		}
	}
	changed := func(o client.Object, q watch.Queue) {
		if xrd := rbac.CompositeOfRole(o.GetName()); xrd != "" {
			q.Add(request(xrd))
		}
		granted(o, q)
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q watch.Queue) { granted(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q watch.Queue) {
			if e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion() {
				changed(e.ObjectNew, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q watch.Queue) { changed(e.Object, q) },
	}
}
