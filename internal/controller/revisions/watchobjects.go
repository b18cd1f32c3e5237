package revisions

import (
	"context"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/controller/watch"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// WatchedKinds returns the kinds whose objects are watched, so that changes by other clients are
// reverted at once. Every cluster with a manager serves these versions. Objects of other kinds are
// compared when their revision is reconciled for another reason.
func WatchedKinds(runtimes bool) []schema.GroupVersionKind {
	all := []schema.GroupVersionKind{
		apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"),
		{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "CompositeResourceDefinition"},
		{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "Composition"},
	}
	if runtimes {
		// Without runtimes, no webhook configurations are installed.
		all = append(all, admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"),
			admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"))
	}
	return all
}

// watchedKinds returns the kinds that this manager watches.
func (r *Reconciler) watchedKinds() []schema.GroupVersionKind {
	return WatchedKinds(len(r.Runtimes.Used()) > 0)
}

// watchObjects watches the objects of active revisions.
func (r *Reconciler) watchObjects(b *builder.Builder) {
	for _, gvk := range r.watchedKinds() {
		b.WatchesMetadata(watch.Metadata(gvk), enqueueForDrift(r.API.Client, r.Kind, gvk.Kind))
	}
}

// byObject is the index of revisions by the objects that they have established.
const byObject = "status.objectRefs"

// indexObjects creates the index byObject.
func indexObjects(ctx context.Context, mgr ctrl.Manager, kind string) error {
	return mgr.GetFieldIndexer().
		IndexField(ctx, v1.NewPackage(kind).NewRevision(), byObject, func(o client.Object) []string {
			refs := o.(v1.PackageRevision).RevisionStatus().ObjectRefs
			keys := make([]string, len(refs))
			for i, ref := range refs {
				keys[i] = ref.Kind + "/" + ref.Name
			}
			return keys
		})
}

// enqueueForDrift enqueues the active revision of an object that another client changed or deleted. The
// deletion of an object also enqueues revisions that were refused, because they may wait for it.
func enqueueForDrift(c client.Reader, kind, objectKind string) handler.Funcs {
	changed := func(rev v1.PackageRevision, old, now client.Object) bool {
		return driftedFrom(rev, objectKind, now) || metadataChanged(old, now) || deletionStarted(old, now)
	}
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q watch.Queue) {
			for _, rev := range establishedBy(ctx, c, kind, objectKind, e.ObjectNew.GetName()) {
				if changed(rev, e.ObjectOld, e.ObjectNew) {
					q.Add(watch.Request(rev))
				}
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q watch.Queue) {
			for _, rev := range append(
				establishedBy(ctx, c, kind, objectKind, e.Object.GetName()), refusedRevisions(ctx, c, kind)...,
			) {
				q.Add(watch.Request(rev))
			}
		},
	}
}

// enqueueForMissedDrift enqueues an active revision whose status now lists an object that another client has changed
// before. The event of that change came when no revision listed the object, or not with the generation of its last
// write.
func enqueueForMissedDrift(c client.Reader, kinds []schema.GroupVersionKind) handler.Funcs {
	return handler.Funcs{UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q watch.Queue) {
		old, now := e.ObjectOld.(v1.PackageRevision), e.ObjectNew.(v1.PackageRevision)
		before, after := old.RevisionStatus().ObjectRefs, now.RevisionStatus().ObjectRefs
		if !revision.IsActive(now) || now.GetDeletionTimestamp() != nil || slices.Equal(before, after) {
			return
		}
		listed := sets.New(before...)
		for _, ref := range after {
			if ref.Generation == 0 || listed.Has(ref) ||
				!slices.ContainsFunc(kinds, func(k schema.GroupVersionKind) bool { return k.Kind == ref.Kind }) {
				continue
			}
			o := watch.Metadata(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
			// If the cache is behind the write, the event of the object is compared with this
			// status later.
			if c.Get(ctx, client.ObjectKey{Name: ref.Name}, o) == nil && o.GetUID() == ref.UID &&
				o.GetGeneration() > ref.Generation {
				q.Add(watch.Request(now))
				return
			}
		}
	}}
}

// establishedBy returns the active revisions of a kind that list an object. A package that is being deleted
// restores none of its objects.
func establishedBy(ctx context.Context, c client.Reader, kind, objectKind, name string) []v1.PackageRevision {
	all := watch.Revisions(ctx, c, kind, client.MatchingFields{byObject: objectKind + "/" + name})
	return slices.DeleteFunc(all, func(rev v1.PackageRevision) bool {
		return !revision.IsActive(rev) || rev.GetDeletionTimestamp() != nil ||
			isDeleted(ctx, c, kind, rev.GetLabels()[v1.LabelPackage])
	})
}

// isDeleted reports whether a package is being deleted.
func isDeleted(ctx context.Context, c client.Reader, kind, name string) bool {
	p := v1.NewPackage(kind)
	return c.Get(ctx, client.ObjectKey{Name: name}, p) == nil && p.GetDeletionTimestamp() != nil
}

// refusedRevisions returns the revisions of a kind that wait for an object of another owner, or for an
// object to be deleted.
func refusedRevisions(ctx context.Context, c client.Reader, kind string) []v1.PackageRevision {
	return slices.DeleteFunc(watch.Revisions(ctx, c, kind), func(rev v1.PackageRevision) bool {
		return !hasReason(rev, apply.RefusalCodes()...)
	})
}

// driftedFrom reports whether an object differs from the state in which a revision left it.
func driftedFrom(rev v1.PackageRevision, kind string, o client.Object) bool {
	for _, ref := range rev.RevisionStatus().ObjectRefs {
		if ref.Kind == kind && ref.Name == o.GetName() && (ref.UID != o.GetUID() || ref.Generation != o.GetGeneration()) {
			return true
		}
	}
	spec := rev.RevisionSpec()
	return !controls(rev, o) || o.GetAnnotations()[plan.ContentDigestAnnotation] == "" ||
		!containsAll(o.GetLabels(), spec.CommonLabels) || !containsAll(o.GetAnnotations(), spec.CommonAnnotations)
}

// controls reports whether the package of a revision is the controller of an object, or has adopted it.
func controls(rev v1.PackageRevision, o client.Object) bool {
	if owner := metav1.GetControllerOf(o); owner != nil {
		p := metav1.GetControllerOf(rev)
		return p != nil && owner.UID == p.UID
	}
	return o.GetAnnotations()[plan.AdoptedByAnnotation] == rev.PackageKind()+"/"+rev.GetLabels()[v1.LabelPackage]
}

// metadataChanged reports whether a label or an annotation was changed or removed, other than with a write of the
// content, which [driftedFrom] recognizes. The reconciliation finds out whether it belongs to the package.
func metadataChanged(old, now client.Object) bool {
	return old.GetGeneration() == now.GetGeneration() &&
		(!containsAll(now.GetLabels(), old.GetLabels()) || !containsAll(now.GetAnnotations(), old.GetAnnotations()))
}

// deletionStarted reports whether the deletion of an object began. The object may exist for long, and no
// object of its kind can be created meanwhile.
func deletionStarted(old, now client.Object) bool {
	return old.GetDeletionTimestamp() == nil && now.GetDeletionTimestamp() != nil
}

// containsAll reports whether a map contains all entries of another one.
func containsAll(all, wanted map[string]string) bool {
	for k, v := range wanted {
		if value, ok := all[k]; !ok || value != v {
			return false
		}
	}
	return true
}
