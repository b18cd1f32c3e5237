package revisions

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/activation"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/consent"
	"github.com/xpkg-dev/xpkg/internal/controller/contention"
	"github.com/xpkg-dev/xpkg/internal/controller/fences"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/controller/watch"
	"github.com/xpkg-dev/xpkg/internal/imageconfig"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
)

// SetupWithManager registers the controller, its indexes and its watches.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, log *slog.Logger) error {
	if err := errors.Join(
		indexObjects(ctx, mgr, r.Kind), indexSecrets(ctx, mgr, r.Kind), indexEvents(ctx, mgr, r.Kind),
	); err != nil {
		return err
	}
	c, rev := r.API.Client, v1.NewPackage(r.Kind).NewRevision()
	b := ctrl.NewControllerManagedBy(mgr).
		Named("revision/"+strings.ToLower(r.Kind)).
		For(rev, builder.WithPredicates(predicate.Or(
			watch.SpecOrMetadataChanged(), externalRuntimeReported(r.Runtimes.Choice, r.Kind),
		))).
		Watches(rev, enqueueInactiveSiblings(c, r.Kind), builder.WithPredicates(becameEstablished())).
		Watches(rev, enqueueForMissedDrift(c, r.watchedKinds())).
		Watches(&v1beta1.ImageConfig{}, enqueueForImageConfig(c, r.Packages.Origins, r.Kind)).
		WatchesRawSource(source.Channel(r.APIChanges, enqueueAll(c, r.Kind))).
		WithOptions(requeue.Options(log))
	b = b.Watches(v1.NewPackage(r.Kind), enqueueForConsent(c, r.Kind))
	if r.Checks.WatchesConsents {
		for _, part := range fences.Kinds() {
			b = b.Watches(part, enqueueForFence(c, r.Kind), builder.WithPredicates(isConsentFence))
		}
	}
	r.watchDependencies(b)
	r.watchObjects(b)
	r.watchKinds(b)
	r.watchRoles(b)
	r.watchRuntimes(b)
	return b.Complete(r)
}

// enqueueAll enqueues all revisions of a kind.
func enqueueAll(c client.Reader, kind string) handler.EventHandler {
	return watch.EnqueueRevisions(c, kind, func(context.Context, client.Object, v1.PackageRevision) bool { return true })
}

// enqueueInactiveSiblings enqueues the inactive revisions of a package whose active revision has taken
// control of its objects. They release the objects that it dropped.
func enqueueInactiveSiblings(c client.Reader, kind string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		var out []reconcile.Request
		for _, rev := range siblingsOf(ctx, c, kind, o) {
			if !revision.IsActive(rev) {
				out = append(out, watch.Request(rev))
			}
		}
		return out
	})
}

// becameEstablished admits the update that records that an active revision has established all of
// its objects.
func becameEstablished() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return revision.IsEstablished(e.ObjectNew.(v1.PackageRevision)) &&
				!revision.IsEstablished(e.ObjectOld.(v1.PackageRevision))
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// enqueueForImageConfig enqueues the revisions whose image an ImageConfig concerns: as it was requested, as
// it was rewritten, or as a mirror has it.
func enqueueForImageConfig(c client.Reader, origins state.Origins, kind string) handler.EventHandler {
	return watch.EnqueueRevisions(c, kind, func(ctx context.Context, o client.Object, rev v1.PackageRevision) bool {
		spec := rev.RevisionSpec()
		images := watch.Images(
			ctx, origins, spec.Image, rev.RevisionStatus().ResolvedImage, spec.PackagePullSecrets, spec.PackagePullPolicy,
		)
		return imageconfig.Concerns(o.(*v1beta1.ImageConfig), images...)
	})
}

// enqueueForConsent enqueues the active revision of a package whose kinds, or whose consent to webhooks, to the
// adoption of objects or to broken custom resources changes, or that starts or stops to share its CRDs with namespaces,
// and all revisions that another client contends with when the spec of their package changes.
func enqueueForConsent(c client.Reader, kind string) handler.Funcs {
	return handler.Funcs{UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q watch.Queue) {
		old, now := e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()
		consents := old[webhooks.AnnotationAllowed] != now[webhooks.AnnotationAllowed] ||
			old[revision.AnnotationAdopt] != now[revision.AnnotationAdopt] ||
			old[revision.AnnotationAcceptBreaks] != now[revision.AnnotationAcceptBreaks] ||
			old[activation.AnnotationKinds] != now[activation.AnnotationKinds] ||
			old[activation.AnnotationDeactivate] != now[activation.AnnotationDeactivate] ||
			old[revision.AnnotationNamespacedInstalls] != now[revision.AnnotationNamespacedInstalls]
		spec := e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration()
		if !consents && !spec {
			return
		}
		for _, rev := range watch.Revisions(ctx, c, kind, client.MatchingLabels{v1.LabelPackage: e.ObjectNew.GetName()}) {
			if consents && revision.IsActive(rev) || spec && hasReason(rev, contention.ErrContended.Name) {
				q.Add(watch.Request(rev))
			}
		}
	}}
}

// isConsentFence admits the fences of consents.
var isConsentFence = predicate.NewPredicateFuncs(func(o client.Object) bool { return consent.IsFence(o.GetName()) })

// enqueueForFence enqueues the revisions that wait for a consent, which may count from now on.
func enqueueForFence(c client.Reader, kind string) handler.EventHandler {
	return watch.EnqueueRevisions(c, kind, func(_ context.Context, _ client.Object, rev v1.PackageRevision) bool {
		return hasReason(rev, webhooks.ErrNotAllowed.Name, apply.ErrNeedsAdoption.Name, apply.ErrBreaksObjects.Name)
	})
}

// siblingsOf returns the revisions of the package of a revision.
func siblingsOf(ctx context.Context, c client.Reader, kind string, rev client.Object) []v1.PackageRevision {
	return watch.Revisions(ctx, c, kind, client.MatchingLabels{v1.LabelPackage: rev.GetLabels()[v1.LabelPackage]})
}

// activeSiblings returns requests for the active revisions of the package of a revision.
func activeSiblings(ctx context.Context, c client.Reader, kind string, rev client.Object) []reconcile.Request {
	var out []reconcile.Request
	for _, sibling := range siblingsOf(ctx, c, kind, rev) {
		if revision.IsActive(sibling) {
			out = append(out, watch.Request(sibling))
		}
	}
	return out
}

// activeRevisions returns requests for the active revisions of a kind that match.
func activeRevisions(
	ctx context.Context, c client.Reader, kind string, matches func(v1.PackageRevision) bool,
) []reconcile.Request {
	var out []reconcile.Request
	for _, rev := range watch.Revisions(ctx, c, kind) {
		if revision.IsActive(rev) && matches(rev) {
			out = append(out, watch.Request(rev))
		}
	}
	return out
}

// hasReason reports whether the Ready condition of a revision has one of some reasons.
func hasReason(rev v1.PackageRevision, reasons ...string) bool {
	return slices.Contains(reasons, string(rev.GetCondition(v1.TypeReady).Reason))
}
