package definitions

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xpkg-dev/xpkg/apis/crds"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/controller/watch"
	"github.com/xpkg-dev/xpkg/internal/state"
)

// together is the time for which changes of definitions are collected, because those of a Provider come together.
const together = 200 * time.Millisecond

// SetupWithManager registers the controller of definitions.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, log *slog.Logger) error {
	revisions := v1.NewPackage(v1.ProviderKind).NewRevision()
	err := ctrl.NewControllerManagedBy(mgr).
		Named("definitions").
		Watches(revisions, enqueueProvider(), builder.WithPredicates(establishmentChanged())).
		Watches(object(state.DefinitionGVK), enqueueOwner()).
		WatchesMetadata(watch.Definitions(), r.enqueueProviders(), builder.WithPredicates(isReplaced())).
		WithOptions(requeue.Options(log)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("controller of definitions: %w", err)
	}
	return nil
}

// enqueueProviders enqueues all Providers.
func (r *Reconciler) enqueueProviders() handler.EventHandler {
	return watch.EnqueuePackages(
		r.Client, v1.ProviderKind, func(context.Context, client.Object, v1.Package) bool { return true },
	)
}

// isReplaced admits the CRD of definitions when Crossplane core replaces it.
func isReplaced() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectNew.GetName() == definitionOfDefinitions &&
				e.ObjectNew.GetLabels()[crds.LabelPermissive] != e.ObjectOld.GetLabels()[crds.LabelPermissive]
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// SetupWithManager registers the controller of policies.
func (r *Policies) SetupWithManager(mgr ctrl.Manager, log *slog.Logger) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named("activationpolicies").
		For(object(state.PolicyGVK)).
		Watches(object(state.DefinitionGVK), r.enqueueAll()).
		WithOptions(requeue.Options(log)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("controller of activation policies: %w", err)
	}
	return nil
}

func object(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gvk)
	return o
}

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// enqueueProvider enqueues the Provider of a revision.
func enqueueProvider() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{request(o.GetLabels()[v1.LabelPackage])}
	})
}

// establishmentChanged admits revisions whose objects, or whose health, change.
func establishmentChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, now := e.ObjectOld.(v1.PackageRevision), e.ObjectNew.(v1.PackageRevision)
			return before.GetGeneration() != now.GetGeneration() ||
				before.GetCondition(v1.TypeRevisionHealthy).Status != now.GetCondition(v1.TypeRevisionHealthy).Status ||
				!slices.Equal(before.RevisionStatus().ObjectRefs, now.RevisionStatus().ObjectRefs)
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// enqueueOwner enqueues the Provider of a definition that was changed or deleted.
func enqueueOwner() handler.EventHandler {
	enqueue := func(o client.Object, q watch.Queue) {
		if c := metav1.GetControllerOf(o); c != nil && c.Kind == v1.ProviderKind {
			q.AddAfter(request(c.Name), together)
		}
	}
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q watch.Queue) {
			if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() {
				enqueue(e.ObjectNew, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q watch.Queue) { enqueue(e.Object, q) },
	}
}

// enqueueAll enqueues all policies after a change of definitions.
func (r *Policies) enqueueAll() handler.EventHandler {
	enqueue := func(ctx context.Context, q watch.Queue) {
		all, _ := state.List(ctx, r.Cache, state.PolicyGVK) // The full resync makes up for a failure.
		for i := range all {
			q.AddAfter(request(all[i].GetName()), together)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, _ event.CreateEvent, q watch.Queue) { enqueue(ctx, q) },
		UpdateFunc: func(ctx context.Context, _ event.UpdateEvent, q watch.Queue) { enqueue(ctx, q) },
		DeleteFunc: func(ctx context.Context, _ event.DeleteEvent, q watch.Queue) { enqueue(ctx, q) },
	}
}
