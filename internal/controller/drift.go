package controller

import (
	"context"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// guarded are the kinds whose objects are watched, so that what somebody else
// changes or deletes is brought back at once. They are in every cluster that the
// manager works with, at these versions. Objects of all other kinds are looked at
// with the next reason to look at their revision.
func (w *world) guarded() []schema.GroupVersionKind {
	all := []schema.GroupVersionKind{
		apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"),
		{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "CompositeResourceDefinition"},
		{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "Composition"},
	}
	if len(w.programs.used()) > 0 {
		// Without programs there are none.
		all = append(all, admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"),
			admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"))
	}
	return all
}

func metadataOf(gvk schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(gvk)
	return m
}

// byObject is the index of revisions by the objects that they have established.
const byObject = "status.objectRefs"

// indexObjects makes revisions known by their objects.
func indexObjects(ctx context.Context, mgr ctrl.Manager, kind string) error {
	return mgr.GetFieldIndexer().IndexField(ctx, v1.NewPackage(kind).NewRevision(), byObject, func(o client.Object) []string {
		refs := o.(v1.PackageRevision).RevisionStatus().ObjectRefs
		keys := make([]string, len(refs))
		for i, ref := range refs {
			keys[i] = ref.Kind + "/" + ref.Name
		}
		return keys
	})
}

// watchObjects makes real drift of an object a reason to look at the active
// revision that established it. What the manager itself writes is none.
func (w *world) watchObjects(b *builder.Builder, kind string) *builder.Builder {
	for _, gvk := range w.guarded() {
		b = b.WatchesMetadata(metadataOf(gvk), w.onDrift(kind, gvk.Kind))
	}
	return b
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func (w *world) onDrift(kind, of string) handler.Funcs {
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			for _, rev := range w.establishedBy(ctx, kind, of, e.ObjectNew.GetName()) {
				if differs(rev, of, e.ObjectNew) || meddled(e.ObjectOld, e.ObjectNew) || leaves(e.ObjectOld, e.ObjectNew) {
					q.Add(request(rev))
				}
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			for _, rev := range append(w.establishedBy(ctx, kind, of, e.Object.GetName()), w.refused(ctx, kind)...) {
				q.Add(request(rev))
			}
		},
	}
}

// establishedBy gives the active revisions of a kind that list an object.
func (w *world) establishedBy(ctx context.Context, kind, of, name string) []v1.PackageRevision {
	return slices.DeleteFunc(w.revisionsOf(ctx, kind, client.MatchingFields{byObject: of + "/" + name}), func(rev v1.PackageRevision) bool {
		return !active(rev) || rev.GetDeletionTimestamp() != nil
	})
}

// refused gives the revisions of a kind that wait for an object of somebody else, or for
// one to be gone. One that is deleted may be what they wait for.
func (w *world) refused(ctx context.Context, kind string) []v1.PackageRevision {
	return slices.DeleteFunc(w.revisionsOf(ctx, kind), func(rev v1.PackageRevision) bool {
		reason := string(rev.GetCondition(v1.TypeReady).Reason)
		return reason != apply.ErrRefused.Name && reason != apply.ErrDeleting.Name && !isFinal(v1.ConditionReason(reason))
	})
}

// differs reports whether an object is not as the revision has left it.
func differs(rev v1.PackageRevision, kind string, o client.Object) bool {
	for _, ref := range rev.RevisionStatus().ObjectRefs {
		if ref.Kind == kind && ref.Name == o.GetName() && (ref.UID != o.GetUID() || ref.Generation != o.GetGeneration()) {
			return true
		}
	}
	spec := rev.RevisionSpec()
	owner := metav1.GetControllerOf(o)
	return owner == nil || owner.UID != rev.GetUID() || o.GetAnnotations()[plan.ContentDigestAnnotation] == "" ||
		!has(o.GetLabels(), spec.CommonLabels) || !has(o.GetAnnotations(), spec.CommonAnnotations)
}

// meddled reports whether a label or annotation that was there was changed or taken
// away. Which of them are the package's only its content tells. The manager itself
// changes them where it moves control, and where it undoes such a change.
func meddled(old, now client.Object) bool {
	before, after := metav1.GetControllerOf(old), metav1.GetControllerOf(now)
	return before != nil && after != nil && before.UID == after.UID &&
		(!has(now.GetLabels(), old.GetLabels()) || !has(now.GetAnnotations(), old.GetAnnotations()))
}

// leaves reports whether somebody has begun to delete an object. It may take long until it
// is gone, and nothing can be made of its kind meanwhile.
func leaves(old, now client.Object) bool {
	return old.GetDeletionTimestamp() == nil && now.GetDeletionTimestamp() != nil
}

func has(all, wanted map[string]string) bool {
	for k, v := range wanted {
		if is, ok := all[k]; !ok || is != v {
			return false
		}
	}
	return true
}
