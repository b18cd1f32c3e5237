// Package watch provides the event handlers that the controllers of packages and of revisions
// share.
//
// A handler that cannot read the cache enqueues nothing: the full resync makes up for that.
package watch

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Queue is the work queue of a controller.
type Queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Request returns the request to reconcile an object without a namespace.
func Request(o client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: o.GetName()}}
}

// Metadata returns an empty object for watching or reading the metadata of a kind.
func Metadata(gvk schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(gvk)
	return m
}

// Secrets returns an empty object for watching the metadata of Secrets. The manager never watches
// their content.
func Secrets() *metav1.PartialObjectMetadata {
	return Metadata(corev1.SchemeGroupVersion.WithKind("Secret"))
}

// Definitions returns an empty object for watching the metadata of CRDs.
func Definitions() *metav1.PartialObjectMetadata {
	return Metadata(apiextensionsv1.SchemeGroupVersion.WithKind(plan.DefinitionKind))
}

// InNamespace returns an option of a watch that admits only the objects in a namespace.
func InNamespace(namespace string) builder.WatchesOption {
	return builder.WithPredicates(
		predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetNamespace() == namespace }),
	)
}

// EnqueuePackages enqueues the packages of a kind that an object concerns.
func EnqueuePackages(
	c client.Reader, kind string, concerns func(context.Context, client.Object, v1.Package) bool,
) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		list := v1.NewPackageList(kind)
		if c.List(ctx, list, client.UnsafeDisableDeepCopy) != nil {
			return nil
		}
		var out []reconcile.Request
		for _, p := range list.Packages() {
			if concerns(ctx, o, p) {
				out = append(out, Request(p))
			}
		}
		return out
	})
}

// EnqueueRevisions enqueues the revisions of a kind that an object concerns.
func EnqueueRevisions(
	c client.Reader, kind string, concerns func(context.Context, client.Object, v1.PackageRevision) bool,
) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		var out []reconcile.Request
		for _, rev := range Revisions(ctx, c, kind) {
			if concerns(ctx, o, rev) {
				out = append(out, Request(rev))
			}
		}
		return out
	})
}

// Revisions lists revisions of a kind in the cache. The caller must not change them.
func Revisions(ctx context.Context, c client.Reader, kind string, opts ...client.ListOption) []v1.PackageRevision {
	list := v1.NewPackage(kind).NewRevisionList()
	if c.List(ctx, list, append(opts, client.UnsafeDisableDeepCopy)...) != nil {
		return nil
	}
	return list.Revisions()
}

// Images returns all references under which an image is, or was, requested.
func Images(
	ctx context.Context, origins state.Origins, image, resolved string, secrets []corev1.LocalObjectReference,
	policy corev1.PullPolicy,
) []string {
	all := []string{image, resolved}
	if _, route, err := origins.Locate(ctx, image, secrets, policy); err == nil {
		all = append(all, route.Images()...)
	}
	return all
}

// SpecOrMetadataChanged admits changes by users and other controllers, and the full resync. It
// rejects changes of only the status, which the controllers write themselves. It admits changes of
// the owners, because a revision may be restored from a backup before its package.
func SpecOrMetadataChanged() predicate.Predicate {
	resync := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion()
	}}
	ownersChanged := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !equality.Semantic.DeepEqual(e.ObjectOld.GetOwnerReferences(), e.ObjectNew.GetOwnerReferences())
	}}
	return predicate.Or(resync, ownersChanged,
		predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{})
}

// LiveDefinitions returns a function that returns the metadata of the CRDs that exist, without managed fields, from
// their watch.
func LiveDefinitions(c client.Reader) func(context.Context, []plan.Ref) (map[plan.Ref]plan.Live, error) {
	return func(ctx context.Context, refs []plan.Ref) (map[plan.Ref]plan.Live, error) {
		out := map[plan.Ref]plan.Live{}
		for _, ref := range refs {
			o := Definitions()
			err := c.Get(ctx, client.ObjectKey{Name: ref.Name}, o, client.UnsafeDisableDeepCopy)
			switch {
			case err == nil:
				out[ref] = apply.Known(ref, o)
			case !apierrors.IsNotFound(err):
				return nil, fmt.Errorf("read the CRD %s: %w", ref.Name, err)
			}
		}
		return out, nil
	}
}
