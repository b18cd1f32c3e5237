package controller

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/imageconfig"
	"github.com/xpkg-dev/xpkg/pkg/lockfile"
)

func request(o client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: o.GetName()}}
}

// toPackages maps an object to the packages of a kind that have to be looked at
// because of it.
func (w *world) toPackages(kind string, concerns func(context.Context, client.Object, v1.Package) bool) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		list := v1.NewPackageList(kind)
		if w.client.List(ctx, list, client.UnsafeDisableDeepCopy) != nil {
			return nil
		}
		var out []reconcile.Request
		for _, p := range list.Packages() {
			if concerns(ctx, o, p) {
				out = append(out, request(p))
			}
		}
		return out
	})
}

// toRevisions maps an object to the revisions of a kind that have to be looked at
// because of it.
func (w *world) toRevisions(kind string, concerns func(context.Context, client.Object, v1.PackageRevision) bool) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		var out []reconcile.Request
		for _, rev := range w.revisionsOf(ctx, kind) {
			if concerns(ctx, o, rev) {
				out = append(out, request(rev))
			}
		}
		return out
	})
}

// revisionsOf lists revisions of a kind for whoever looks for work: none when they
// cannot be read. They are those that everybody sees, and not to be changed.
func (w *world) revisionsOf(ctx context.Context, kind string, opts ...client.ListOption) []v1.PackageRevision {
	list := v1.NewPackage(kind).NewRevisionList()
	if w.client.List(ctx, list, append(opts, client.UnsafeDisableDeepCopy)...) != nil {
		return nil
	}
	return list.Revisions()
}

// onImageConfig maps an ImageConfig to the packages of a kind whose image it says
// something about: as it was asked for, as it was rewritten, or as a mirror has it.
func (w *world) onImageConfig(kind string) handler.EventHandler {
	return w.toPackages(kind, func(ctx context.Context, o client.Object, p v1.Package) bool {
		return imageconfig.Concerns(o.(*v1beta1.ImageConfig), w.imagesOf(ctx, p)...)
	})
}

// onRevisionImageConfig does the same for revisions.
func (w *world) onRevisionImageConfig(kind string) handler.EventHandler {
	return w.toRevisions(kind, func(ctx context.Context, o client.Object, rev v1.PackageRevision) bool {
		spec := rev.RevisionSpec()
		images := w.images(ctx, spec.Image, rev.RevisionStatus().ResolvedImage, spec.PackagePullSecrets, spec.PackagePullPolicy)
		return imageconfig.Concerns(o.(*v1beta1.ImageConfig), images...)
	})
}

// onSecret maps a secret to the packages of a kind that are not ready and could be
// pulled with it.
func (w *world) onSecret(kind string) handler.EventHandler {
	return w.toPackages(kind, func(ctx context.Context, o client.Object, p v1.Package) bool {
		return p.GetCondition(v1.TypeReady).Status != corev1.ConditionTrue && w.pulls(ctx, p, o.GetName())
	})
}

// pulls reports whether a package names a secret, or an ImageConfig for its image
// does.
func (w *world) pulls(ctx context.Context, p v1.Package, secret string) bool {
	for _, s := range p.PackageSpec().PackagePullSecrets {
		if s.Name == secret {
			return true
		}
	}
	var configs v1beta1.ImageConfigList
	if w.client.List(ctx, &configs) != nil {
		return false
	}
	for i := range configs.Items {
		c := &configs.Items[i]
		if r := c.Spec.Registry; r != nil && r.Authentication != nil && r.Authentication.PullSecretRef.Name == secret &&
			imageconfig.Concerns(c, w.imagesOf(ctx, p)...) {
			return true
		}
	}
	return false
}

// imagesOf are the images of a package.
func (w *world) imagesOf(ctx context.Context, p v1.Package) []string {
	spec := p.PackageSpec()
	return w.images(ctx, spec.Package, p.PackageStatus().ResolvedPackage, spec.PackagePullSecrets, spec.PackagePullPolicy)
}

// images are all the references under which an image is, or was, asked for.
func (w *world) images(ctx context.Context, image, resolved string, secrets []corev1.LocalObjectReference, policy corev1.PullPolicy) []string {
	all := []string{image, resolved}
	if _, route, err := w.origins.Locate(ctx, image, secrets, policy); err == nil {
		all = append(all, route.Images()...)
	}
	return all
}

// inNamespace lets through what lies in the namespace of the packages' secrets.
func (w *world) inNamespace() builder.WatchesOption {
	return builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetNamespace() == w.namespace }))
}

// onHandOver maps an active revision that has taken its objects to its inactive
// siblings, which let go of what is left now.
func (w *world) onHandOver(kind string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		var out []reconcile.Request
		for _, rev := range w.revisionsOf(ctx, kind, client.MatchingLabels{v1.LabelPackage: o.GetLabels()[v1.LabelPackage]}) {
			if !active(rev) {
				out = append(out, request(rev))
			}
		}
		return out
	})
}

// handedOver lets through the moment in which an active revision has all that it
// wants.
func handedOver() builder.WatchesOption {
	return builder.WithPredicates(predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return holds(e.ObjectNew.(v1.PackageRevision)) && !holds(e.ObjectOld.(v1.PackageRevision))
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	})
}

// holds reports whether a revision is active and has established its objects as
// its spec is now.
func holds(rev v1.PackageRevision) bool {
	healthy := rev.GetCondition(v1.TypeRevisionHealthy)
	return active(rev) && healthy.Status == corev1.ConditionTrue && healthy.ObservedGeneration == rev.GetGeneration()
}

// secretMetadata is what is watched of secrets: never their content.
func secretMetadata() *metav1.PartialObjectMetadata {
	return metadataOf(corev1.SchemeGroupVersion.WithKind("Secret"))
}

// dependents maps a package that changed to the revisions of a kind that wait
// for a dependency. No other revision has work because of it.
func (w *world) dependents(kind string) handler.EventHandler {
	return w.toRevisions(kind, func(_ context.Context, _ client.Object, rev v1.PackageRevision) bool {
		return waitsForDependencies(rev)
	})
}

// bereft maps a package that is gone, or asks for something else, and a revision that
// was activated, to the active revisions of a kind that need the package or work with
// it.
func (w *world) bereft(kind string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		places := w.places(ctx)
		place := places(repositoryOf(o))
		var out []reconcile.Request
		for _, rev := range w.revisionsOf(ctx, kind) {
			if !active(rev) {
				continue
			}
			needs := lockfile.Dependencies(w.needs.Of(ctx, rev.RevisionSpec().Image, rev.RevisionSpec().Digest))
			if slices.ContainsFunc(needs, func(d lockfile.Dependency) bool { return places(d.Package) == place }) {
				out = append(out, request(rev))
			}
		}
		return out
	})
}

// repositoryOf is that of a package, or of a revision.
func repositoryOf(o client.Object) string {
	if rev, ok := o.(v1.PackageRevision); ok {
		return lockfile.Repository(rev.RevisionSpec().Image)
	}
	return lockfile.Repository(o.(v1.Package).PackageSpec().Package)
}

// activated lets through revisions from the moment on in which what they bring takes
// the place of what was there. One content can be several versions. Those that are there when the manager starts are looked at anyway.
func activated() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			rev := e.Object.(v1.PackageRevision)
			return active(rev) && rev.RevisionSpec().Revision > 1 && rev.RevisionStatus().ObservedGeneration == 0
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, is := e.ObjectOld.(v1.PackageRevision), e.ObjectNew.(v1.PackageRevision)
			return active(is) && (!active(was) || was.RevisionSpec().Image != is.RevisionSpec().Image)
		},
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// movedAway lets through packages that are deleted, or whose spec changes, and those
// that come and that somebody would work with.
func (w *world) movedAway() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			return w.needs.IsOptional(lockfile.Repository(e.Object.(v1.Package).PackageSpec().Package))
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || e.ObjectNew.GetDeletionTimestamp() != nil
		},
	}
}
