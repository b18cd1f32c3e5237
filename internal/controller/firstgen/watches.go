package firstgen

import (
	"context"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/controller/watch"
	"github.com/xpkg-dev/xpkg/internal/revision"
)

// SetupWithManager registers the controller of ClusterPackageInstalls.
func (r *ClusterInstalls) SetupWithManager(mgr ctrl.Manager, log *slog.Logger) error {
	return ctrl.NewControllerManagedBy(mgr).Named("clusterpackageinstall").
		For(&packagesv1alpha1.ClusterPackageInstall{}, builder.WithPredicates(r.changed())).
		Owns(&packagesv1alpha1.Package{}, builder.MatchEveryOwner).
		Owns(&packagesv1alpha1.StackDefinition{}).
		Watches(&v1.Provider{}, r.enqueueInstalls(packagesv1alpha1.ClusterPackageInstallKind)).
		WithOptions(requeue.Options(log)).
		Complete(r)
}

// SetupWithManager registers the controller of PackageInstalls.
func (r *NamespaceInstalls) SetupWithManager(mgr ctrl.Manager, log *slog.Logger) error {
	return ctrl.NewControllerManagedBy(mgr).Named("packageinstall").
		For(&packagesv1alpha1.PackageInstall{}, builder.WithPredicates(r.changed())).
		Owns(&packagesv1alpha1.Package{}, builder.MatchEveryOwner).
		Owns(&packagesv1alpha1.StackDefinition{}).
		Watches(&v1.Provider{}, r.enqueueInstalls(packagesv1alpha1.PackageInstallKind)).
		WithOptions(requeue.Options(log)).
		Complete(r)
}

// SetupWithManager registers the controller of Packages.
func (r *Packages) SetupWithManager(mgr ctrl.Manager, log *slog.Logger) error {
	b := ctrl.NewControllerManagedBy(mgr).Named("package").
		For(&packagesv1alpha1.Package{}, builder.WithPredicates(r.changed())).
		WithOptions(requeue.Options(log))
	if r.Changes != nil {
		b = b.WatchesRawSource(source.Channel(r.Changes,
			handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
				if key, ok := r.used.withProcess(o.GetName()); ok {
					return []reconcile.Request{{NamespacedName: key}}
				}
				return nil
			})))
	}
	return b.Complete(r)
}

// changed admits the changes that [watch.SpecOrMetadataChanged] admits, and changes of the status by other clients,
// which the next reconciliation repairs.
func (b *Base) changed() predicate.Predicate {
	writes := b.API.Status.Writes
	return predicate.Or(watch.SpecOrMetadataChanged(), predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  func(e event.UpdateEvent) bool { return !writes.IsLast(e.ObjectNew) },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	})
}

// enqueueInstalls enqueues the install objects of a kind that a Provider concerns: those that use it, and those that
// are not ready and may wait for it.
func (b *Base) enqueueInstalls(kind string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		all, err := listInstalls(ctx, b.API.Client, kind)
		if err != nil {
			return nil
		}
		var out []reconcile.Request
		if kind == packagesv1alpha1.PackageInstallKind && o.GetAnnotations()[revision.AnnotationCreatedForNamespaces] != "" {
			// Its last PackageInstall may have been deleted while the manager did not run.
			out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Name: o.GetName()}})
		}
		for _, in := range all {
			isReady := in.GetCondition(v1.TypeReady).Status == corev1.ConditionTrue
			if !isReady || in.InstallStatus().Provider == o.GetName() || b.providerName(in) == o.GetName() {
				out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(in)})
			}
		}
		return out
	})
}
