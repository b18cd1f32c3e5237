package packages

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/controller/watch"
	"github.com/xpkg-dev/xpkg/internal/imageconfig"
	"github.com/xpkg-dev/xpkg/internal/state"
)

// SetupWithManager registers the controller and its watches.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, log *slog.Logger) error {
	p, c, origins := v1.NewPackage(r.Kind), r.API.Client, r.Resolver.Packages.Origins
	b := ctrl.NewControllerManagedBy(mgr).
		Named("package/"+strings.ToLower(r.Kind)).
		For(p, builder.WithPredicates(watch.SpecOrMetadataChanged())).
		Owns(p.NewRevision()).
		Watches(&v1beta1.ImageConfig{}, enqueueForImageConfig(c, origins, r.Kind)).
		WatchesMetadata(
			watch.Secrets(), enqueueForSecret(c, origins, r.Kind), watch.InNamespace(r.Resolver.Packages.Namespace),
		).
		WatchesRawSource(source.Channel(r.APIChanges, enqueueAll(c, r.Kind))).
		WatchesRawSource(source.Channel(r.Held, &handler.EnqueueRequestForObject{})).
		WatchesRawSource(source.Channel(r.Counts.changes[r.Kind], &handler.EnqueueRequestForObject{})).
		WithOptions(requeue.Options(log))
	if r.Kind == v1.ProviderKind {
		b = b.WatchesMetadata(watch.Definitions(), enqueueWhenDeleted(c, r.Kind), builder.WithPredicates(onlyDeletions))
	}
	if !r.Unprotected {
		b = b.WatchesMetadata(watch.Definitions(), handler.EnqueueRequestsFromMapFunc(r.leftBehind))
	}
	return b.Complete(r)
}

// enqueueForImageConfig enqueues the packages whose image an ImageConfig concerns: as it was requested, as
// it was rewritten, or as a mirror has it.
func enqueueForImageConfig(c client.Reader, origins state.Origins, kind string) handler.EventHandler {
	return watch.EnqueuePackages(c, kind, func(ctx context.Context, o client.Object, p v1.Package) bool {
		return imageconfig.Concerns(o.(*v1beta1.ImageConfig), imagesOf(ctx, origins, p)...)
	})
}

// enqueueForSecret enqueues the packages that are not ready and may use a Secret as a pull secret.
func enqueueForSecret(c client.Reader, origins state.Origins, kind string) handler.EventHandler {
	return watch.EnqueuePackages(c, kind, func(ctx context.Context, o client.Object, p v1.Package) bool {
		return p.GetCondition(v1.TypeReady).Status != corev1.ConditionTrue && isPullSecret(ctx, c, origins, p, o.GetName())
	})
}

// enqueueWhenDeleted enqueues a package that is being deleted when the last of its CRDs of a stage of its deletion is
// gone.
func enqueueWhenDeleted(c client.Reader, kind string) handler.EventHandler {
	return watch.EnqueuePackages(c, kind, func(ctx context.Context, gone client.Object, p v1.Package) bool {
		if p.GetDeletionTimestamp() == nil || !isOwnedBy(gone, p) {
			return false
		}
		rest, err := definitions(ctx, c)
		stage := deletionStage(gone.GetName())
		return err == nil && !slices.ContainsFunc(rest, func(other metav1.PartialObjectMetadata) bool {
			return deletionStage(other.Name) == stage && isOwnedBy(&other, p)
		})
	})
}

// isOwnedBy reports whether a package is an owner of an object.
func isOwnedBy(o client.Object, p v1.Package) bool {
	return slices.ContainsFunc(
		o.GetOwnerReferences(), func(owner metav1.OwnerReference) bool { return owner.UID == p.GetUID() },
	)
}

// onlyDeletions admits the events of deleted objects.
var onlyDeletions = predicate.Funcs{
	CreateFunc:  func(event.CreateEvent) bool { return false },
	UpdateFunc:  func(event.UpdateEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

// enqueueAll enqueues all packages of a kind.
func enqueueAll(c client.Reader, kind string) handler.EventHandler {
	return watch.EnqueuePackages(c, kind, func(context.Context, client.Object, v1.Package) bool { return true })
}

// isPullSecret reports whether a package, or an ImageConfig for its image, names a Secret.
func isPullSecret(ctx context.Context, c client.Reader, origins state.Origins, p v1.Package, secret string) bool {
	for _, s := range p.PackageSpec().PackagePullSecrets {
		if s.Name == secret {
			return true
		}
	}
	var configs v1beta1.ImageConfigList
	if c.List(ctx, &configs) != nil {
		return false
	}
	for i := range configs.Items {
		config := &configs.Items[i]
		if r := config.Spec.Registry; r != nil && r.Authentication != nil && r.Authentication.PullSecretRef.Name == secret &&
			imageconfig.Concerns(config, imagesOf(ctx, origins, p)...) {
			return true
		}
	}
	return false
}

// imagesOf returns all references under which the image of a package is, or was, requested.
func imagesOf(ctx context.Context, origins state.Origins, p v1.Package) []string {
	spec := p.PackageSpec()
	return watch.Images(
		ctx, origins, spec.Package, p.PackageStatus().ResolvedPackage, spec.PackagePullSecrets, spec.PackagePullPolicy,
	)
}
