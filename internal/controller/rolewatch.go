package controller

import (
	"cmp"
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

const (
	// rolePause is how long the authorizer of an API server may need to hear of a role
	// that was written.
	rolePause = time.Second
	// familyPause lets the members of a family that are installed together be looked at
	// once, and not once for each of the others.
	familyPause = 3 * time.Second
)

// watchRights makes what others do to roles, and what becomes of the family of a
// revision, a reason to look at it.
func (w *world) watchRights(b *builder.Builder, kind string) *builder.Builder {
	if w.permissions == nil {
		return b
	}
	if kind == v1.ConfigurationKind {
		return b.WatchesMetadata(roleMetadata("ClusterRole"), w.onCompositeRole(), builder.WithPredicates(roleChanged()))
	}
	for _, of := range roleKinds() {
		b = b.WatchesMetadata(roleMetadata(of), w.onRole(kind))
	}
	if kind == v1.ProviderKind {
		b = b.Watches(v1.NewPackage(kind).NewRevision(), w.onFamily(kind))
	}
	return w.watchCeiling(b, kind)
}

// onRole maps a role or binding of a revision that was changed or deleted to that
// revision, and one of somebody else to the revisions that wait for rights.
func (w *world) onRole(kind string) handler.Funcs {
	changed := func(ctx context.Context, owner *metav1.OwnerReference, q queue) {
		if owner != nil && owner.Kind == v1.RevisionKind(kind) {
			rev := v1.NewPackage(kind).NewRevision()
			rev.SetName(owner.Name)
			q.Add(request(rev))
			return
		}
		for _, rev := range w.revisionsOf(ctx, kind) {
			if string(rev.GetCondition(v1.TypeReady).Reason) == rbac.ErrPermissionMissing.Name {
				q.AddAfter(request(rev), rolePause)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if owner := metav1.GetControllerOf(e.Object); owner == nil || w.idle(ctx, kind, owner.Name) {
				changed(ctx, owner, q)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion() {
				changed(ctx, cmp.Or(metav1.GetControllerOf(e.ObjectOld), metav1.GetControllerOf(e.ObjectNew)), q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			changed(ctx, metav1.GetControllerOf(e.Object), q)
		},
	}
}

// onCompositeRole maps a ClusterRole of a composite resource to the active revision of the
// Configuration that defines it.
func (w *world) onCompositeRole() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		var out []reconcile.Request
		for _, owner := range o.GetOwnerReferences() {
			if owner.Kind != compositeDefinition {
				continue
			}
			for _, rev := range w.revisionsOf(ctx, v1.ConfigurationKind) {
				if active(rev) && slices.ContainsFunc(rev.RevisionStatus().ObjectRefs, func(r v1.TypedReference) bool {
					return r.Kind == owner.Kind && r.Name == owner.Name
				}) {
					out = append(out, request(rev))
				}
			}
		}
		return out
	})
}

// compositeDefinition is the kind that owns the ClusterRoles of a composite resource.
const compositeDefinition = "CompositeResourceDefinition"

// roleChanged admits changes and deletions of roles.
func roleChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion()
		},
	}
}

// idle reports whether a revision is not active. A role of one was not seen yet when
// its rights were taken away, and is taken away now.
func (w *world) idle(ctx context.Context, kind, name string) bool {
	rev := v1.NewPackage(kind).NewRevision()
	return w.client.Get(ctx, client.ObjectKey{Name: name}, rev) == nil && !active(rev)
}

// onFamily maps a revision whose objects are others now to the active revisions that
// share its types.
func (w *world) onFamily(kind string) handler.Funcs {
	changed := func(ctx context.Context, o client.Object, q queue) {
		family := o.GetLabels()[v1.LabelProviderFamily]
		if family == "" {
			return
		}
		for _, rev := range w.revisionsOf(ctx, kind, client.MatchingLabels{v1.LabelProviderFamily: family}) {
			if permission.Related(o.(v1.PackageRevision), family, rev) {
				q.AddAfter(request(rev), familyPause)
			}
		}
	}
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			was, is := e.ObjectOld.(v1.PackageRevision), e.ObjectNew.(v1.PackageRevision)
			if active(was) != active(is) || len(was.RevisionStatus().ObjectRefs) != len(is.RevisionStatus().ObjectRefs) {
				changed(ctx, is, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { changed(ctx, e.Object, q) },
	}
}
