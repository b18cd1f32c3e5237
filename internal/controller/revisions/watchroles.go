package revisions

import (
	"cmp"
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/watch"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

const (
	// roleDelay is the maximum delay until the authorizer of an API server uses a written role.
	roleDelay = time.Second
	// familyDelay is the delay of a reconciliation after a change of another package of the
	// provider family, so that packages that are installed together are reconciled once, and not
	// once for each of the others.
	familyDelay = 3 * time.Second
)

// roleKinds returns the kinds of roles and bindings.
func roleKinds() []string {
	return []string{"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
}

// roleMetadata returns the metadata of a kind of role or binding.
func roleMetadata(kind string) *metav1.PartialObjectMetadata {
	return watch.Metadata(rbacv1.SchemeGroupVersion.WithKind(kind))
}

// PolicyMetadata returns the metadata of the ConfigMap with the policy for requests.
func PolicyMetadata() *metav1.PartialObjectMetadata {
	return watch.Metadata(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
}

// CachedRoles returns the cache configuration of roles and bindings: of cluster-wide ones, and of
// those in namespaces. The managed fields of roles with a controller are kept, because they show
// whether another client changed the role.
func CachedRoles(namespaces map[string]cache.Config) map[client.Object]cache.ByObject {
	out := map[client.Object]cache.ByObject{}
	strip := cache.TransformStripManagedFields()
	transform := func(o any) (any, error) {
		if m, ok := o.(metav1.Object); ok && metav1.GetControllerOf(m) != nil {
			return o, nil
		}
		return strip(o)
	}
	for _, kind := range roleKinds() {
		by := cache.ByObject{Transform: transform}
		if kind == "Role" || kind == "RoleBinding" {
			by.Namespaces = namespaces
		}
		out[roleMetadata(kind)] = by
	}
	return out
}

// watchRoles watches roles, provider families, and the policy for requests.
func (r *Reconciler) watchRoles(b *builder.Builder) {
	c := r.API.Client
	if r.Checks.Permissions == nil || r.Kind == v1.ConfigurationKind {
		return
	}
	for _, kind := range roleKinds() {
		b.WatchesMetadata(roleMetadata(kind), enqueueForRole(c, r.Kind))
	}
	if r.Kind == v1.ProviderKind {
		b.Watches(v1.NewPackage(r.Kind).NewRevision(), enqueueFamily(c, r.Kind))
	}
	if r.Checks.Permissions.Policy.ConfigMap != "" {
		b.WatchesMetadata(PolicyMetadata(), enqueueForPolicy(c, r.Kind))
	}
}

// enqueueForPolicy enqueues the active revisions with permission requests.
func enqueueForPolicy(c client.Reader, kind string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
		return activeRevisions(
			ctx, c, kind, func(rev v1.PackageRevision) bool { return len(rev.RevisionStatus().PermissionRequests) > 0 },
		)
	})
}

// enqueueForRole enqueues the revision that owns a role or binding. A role without an owner among
// the revisions may grant permissions to the manager, so it enqueues the revisions that wait for
// permissions.
func enqueueForRole(c client.Reader, kind string) handler.Funcs {
	enqueue := func(ctx context.Context, owner *metav1.OwnerReference, q watch.Queue) {
		if owner != nil && owner.Kind == v1.RevisionKind(kind) {
			rev := v1.NewPackage(kind).NewRevision()
			rev.SetName(owner.Name)
			q.Add(watch.Request(rev))
			return
		}
		for _, rev := range watch.Revisions(ctx, c, kind) {
			if hasReason(rev, rbac.ErrPermissionMissing.Name) {
				q.AddAfter(watch.Request(rev), roleDelay)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q watch.Queue) {
			if owner := metav1.GetControllerOf(e.Object); owner == nil || isInactive(ctx, c, kind, owner.Name) {
				enqueue(ctx, owner, q)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q watch.Queue) {
			if e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion() {
				enqueue(ctx, cmp.Or(metav1.GetControllerOf(e.ObjectOld), metav1.GetControllerOf(e.ObjectNew)), q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q watch.Queue) {
			enqueue(ctx, metav1.GetControllerOf(e.Object), q)
		},
	}
}

// isInactive reports whether a revision exists and is not active. When its permissions were
// revoked, the cache may have lacked a new role, so the event of that role enqueues the revision
// again.
func isInactive(ctx context.Context, c client.Reader, kind, name string) bool {
	rev := v1.NewPackage(kind).NewRevision()
	return c.Get(ctx, client.ObjectKey{Name: name}, rev) == nil && !revision.IsActive(rev)
}

// enqueueFamily enqueues the related revisions of a provider family when one of them is activated,
// deactivated or deleted, or when the number of its objects changes.
func enqueueFamily(c client.Reader, kind string) handler.Funcs {
	enqueue := func(ctx context.Context, o client.Object, q watch.Queue) {
		family := o.GetLabels()[v1.LabelProviderFamily]
		if family == "" {
			return
		}
		for _, rev := range watch.Revisions(ctx, c, kind, client.MatchingLabels{v1.LabelProviderFamily: family}) {
			if permission.Related(o.(v1.PackageRevision), family, rev) {
				q.AddAfter(watch.Request(rev), familyDelay)
			}
		}
	}
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q watch.Queue) {
			old, now := e.ObjectOld.(v1.PackageRevision), e.ObjectNew.(v1.PackageRevision)
			if revision.IsActive(old) != revision.IsActive(now) ||
				len(old.RevisionStatus().ObjectRefs) != len(now.RevisionStatus().ObjectRefs) {
				enqueue(ctx, now, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q watch.Queue) { enqueue(ctx, e.Object, q) },
	}
}
