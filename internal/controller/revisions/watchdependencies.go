package revisions

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/watch"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// watchDependencies watches the packages and revisions that revisions depend on.
func (r *Reconciler) watchDependencies(b *builder.Builder) {
	c := r.API.Client
	dependents := enqueueDependents(c, r.Dependencies.Known, r.Packages.Origins, r.Kind)
	users := enqueueKindUsers(c, r.Packages.Origins, r.Kind)
	for _, kind := range v1.PackageKinds() {
		p := v1.NewPackage(kind)
		b.Watches(p, enqueueWaiting(c, r.Kind)).
			Watches(p, dependents, builder.WithPredicates(specOrDeletionChanged(r.Dependencies.Known))).
			Watches(p.NewRevision(), dependents, builder.WithPredicates(activationChanged())).
			Watches(p.NewRevision(), users, builder.WithPredicates(kindsChanged()))
	}
}

// enqueueWaiting enqueues the revisions of a kind that wait for a dependency.
func enqueueWaiting(c client.Reader, kind string) handler.EventHandler {
	return watch.EnqueueRevisions(c, kind, func(_ context.Context, _ client.Object, rev v1.PackageRevision) bool {
		s := rev.RevisionStatus()
		return revision.IsActive(rev) && (s.InstalledDependencies < s.FoundDependencies || s.InvalidDependencies > 0)
	})
}

// enqueueDependents enqueues the active revisions of a kind that depend, also optionally, on a package.
func enqueueDependents(
	c client.Reader, known *state.Dependencies, origins state.Origins, kind string,
) handler.EventHandler {
	return enqueueNeeding(c, origins, kind, func(ctx context.Context, rev v1.PackageRevision) []dependency.Dependency {
		needs := lockfile.Dependencies(known.Of(ctx, rev.RevisionSpec().Image, rev.RevisionSpec().Digest))
		return append(needs, kindProvidersOf(ctx, c, rev)...)
	})
}

// enqueueKindUsers enqueues the active revisions of a kind for whose required kinds a package was selected.
func enqueueKindUsers(c client.Reader, origins state.Origins, kind string) handler.EventHandler {
	return enqueueNeeding(c, origins, kind, func(ctx context.Context, rev v1.PackageRevision) []dependency.Dependency {
		return kindProvidersOf(ctx, c, rev)
	})
}

// enqueueNeeding enqueues the active revisions of a kind among whose needs a package is.
func enqueueNeeding(
	c client.Reader, origins state.Origins, kind string,
	needs func(context.Context, v1.PackageRevision) []dependency.Dependency,
) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		rewrites := state.Rewrites(ctx, origins)
		place := rewrites(repositoryOf(o))
		return activeRevisions(ctx, c, kind, func(rev v1.PackageRevision) bool {
			return slices.ContainsFunc(
				needs(ctx, rev), func(d dependency.Dependency) bool { return rewrites(d.Package) == place },
			)
		})
	})
}

// kindProvidersOf returns the dependencies on the packages that are recorded for the kinds that a revision requires.
func kindProvidersOf(ctx context.Context, c client.Reader, rev v1.PackageRevision) []dependency.Dependency {
	p := v1.NewPackage(rev.PackageKind())
	if c.Get(ctx, client.ObjectKey{Name: rev.GetLabels()[v1.LabelPackage]}, p, client.UnsafeDisableDeepCopy) != nil {
		return nil
	}
	return graph.KindProviders(p)
}

// repositoryOf returns the repository of a package or a revision.
func repositoryOf(o client.Object) string {
	if rev, ok := o.(v1.PackageRevision); ok {
		return oci.RepositoryName(rev.RevisionSpec().Image)
	}
	return oci.RepositoryName(o.(v1.Package).PackageSpec().Package)
}

// activationChanged admits revisions that become active, and active ones whose image changes: one content
// can be several versions. The first revision of a package, and revisions that exist when the manager
// starts, are reported by other events.
func activationChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			rev := e.Object.(v1.PackageRevision)
			return revision.IsActive(rev) && rev.RevisionSpec().Revision > 1 && rev.RevisionStatus().ObservedGeneration == 0
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			old, now := e.ObjectOld.(v1.PackageRevision), e.ObjectNew.(v1.PackageRevision)
			return revision.IsActive(now) && (!revision.IsActive(old) || old.RevisionSpec().Image != now.RevisionSpec().Image)
		},
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// kindsChanged admits revisions after which the package can provide other kinds: active ones that have established
// their objects, and inactive ones that have released theirs.
func kindsChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			old, now := e.ObjectOld.(v1.PackageRevision), e.ObjectNew.(v1.PackageRevision)
			if revision.IsActive(now) {
				return revision.IsEstablished(now) && !revision.IsEstablished(old)
			}
			return old.RevisionStatus().ObservedGeneration != now.RevisionStatus().ObservedGeneration
		},
		DeleteFunc:  func(e event.DeleteEvent) bool { return !revision.IsActive(e.Object.(v1.PackageRevision)) },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// specOrDeletionChanged admits packages that are deleted, whose spec changes, or that are created and that
// some package has as an optional dependency.
func specOrDeletionChanged(known *state.Dependencies) predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			return known.IsOptional(repositoryOf(e.Object))
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || e.ObjectNew.GetDeletionTimestamp() != nil
		},
	}
}

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
	b.Watches(&corev1.Event{}, enqueue, builder.WithPredicates(missesChanged()))
}

// indexEvents creates the indexes of the events about composite resources.
func indexEvents(ctx context.Context, mgr ctrl.Manager, kind string) error {
	if kind != v1.ProviderKind {
		return nil
	}
	for field, index := range state.EventIndexes() {
		if err := mgr.GetFieldIndexer().IndexField(ctx, &corev1.Event{}, field, index); err != nil {
			return err
		}
	}
	return nil
}

// missesChanged admits events of failed compositions that name other kinds that are not served.
func missesChanged() predicate.Predicate {
	missed := func(o client.Object) string { return o.(*corev1.Event).Message }
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return missed(e.Object) != "" },
		UpdateFunc: func(e event.UpdateEvent) bool { return missed(e.ObjectOld) != missed(e.ObjectNew) },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// enqueueSelecting enqueues the active revisions of Providers that can have inactive kinds.
func enqueueSelecting(c client.Reader) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
		return activeRevisions(ctx, c, v1.ProviderKind, revision.IsSafeStart)
	})
}

// enqueueActivated enqueues the Providers that may offer the kind of a definition that a user has activated: no
// revision lists its CRD.
func enqueueActivated(c client.Reader) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		if !state.IsActivated(o.(*unstructured.Unstructured)) ||
			len(establishedBy(ctx, c, v1.ProviderKind, plan.DefinitionKind, o.GetName())) > 0 {
			return nil
		}
		return activeRevisions(ctx, c, v1.ProviderKind, revision.IsSafeStart)
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
