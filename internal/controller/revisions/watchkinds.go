package revisions

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/watch"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// ActivatingKinds returns the objects without Go types that decide which kinds of Providers are active.
func ActivatingKinds() []client.Object {
	var out []client.Object
	for _, gvk := range activating {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(gvk)
		out = append(out, o)
	}
	return out
}

var activating = []schema.GroupVersionKind{state.DefinitionGVK, state.PolicyGVK, state.CompositionGVK}

// watchKinds watches what decides which kinds of Providers are active.
func (r *Reconciler) watchKinds(b *builder.Builder) {
	if r.Kind != v1.ProviderKind {
		return
	}
	enqueue := enqueueSelecting(r.API.Client)
	for _, o := range ActivatingKinds() {
		if o.GetObjectKind().GroupVersionKind() == state.DefinitionGVK {
			b.Watches(o, enqueueActivated(r.API.Client))
			continue
		}
		b.Watches(o, enqueue, builder.WithPredicates(needsChanged()))
	}
	b.Watches(v1.NewPackage(v1.ConfigurationKind).NewRevision(), enqueue, builder.WithPredicates(usesChanged()))
}

// enqueueSelecting enqueues the active revisions of Providers that can have inactive kinds.
func enqueueSelecting(c client.Reader) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
		var out []reconcile.Request
		for _, rev := range activeProviders(ctx, c) {
			out = append(out, watch.Request(rev))
		}
		return out
	})
}

// enqueueActivated enqueues the Providers that may offer the kind of a definition that a user has activated: no revision
// lists its CRD.
func enqueueActivated(c client.Reader) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		if !state.IsActiveDefinition(o.(*unstructured.Unstructured)) ||
			len(establishedBy(ctx, c, v1.ProviderKind, plan.DefinitionKind, o.GetName())) > 0 {
			return nil
		}
		var out []reconcile.Request
		for _, rev := range activeProviders(ctx, c) {
			out = append(out, watch.Request(rev))
		}
		return out
	})
}

// needsChanged admits policies and Compositions after which other kinds may be needed.
func needsChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, now := e.ObjectOld.(*unstructured.Unstructured), e.ObjectNew.(*unstructured.Unstructured)
			return !equality.Semantic.DeepEqual(before.Object["spec"], now.Object["spec"]) ||
				before.GetAnnotations()[v1.AnnotationPaused] != now.GetAnnotations()[v1.AnnotationPaused]
		},
	}
}

// usesChanged admits revisions of Configurations whose uses of kinds begin or end to count.
func usesChanged() predicate.Predicate {
	counted := func(o client.Object) string {
		rev := o.(v1.PackageRevision)
		if !revision.IsActive(rev) {
			return ""
		}
		return rev.GetAnnotations()[revision.AnnotationUses]
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return counted(e.Object) != "" },
		UpdateFunc: func(e event.UpdateEvent) bool { return counted(e.ObjectOld) != counted(e.ObjectNew) },
		DeleteFunc: func(e event.DeleteEvent) bool { return counted(e.Object) != "" },
	}
}
