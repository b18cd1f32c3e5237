// Package revisions implements the controller of package revisions. It establishes the objects of
// the active revision of a package, and releases the objects of inactive revisions.
//
// [Reconciler.reconcileActive] lists the steps of an installation; each step has a file of its own.
package revisions

import (
	"cmp"
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/contention"
	"github.com/xpkg-dev/xpkg/internal/controller/kube"
	"github.com/xpkg-dev/xpkg/internal/controller/logging"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
)

// Reconciler reconciles the revisions of one kind of package.
type Reconciler struct {
	// Kind is the kind of the packages.
	Kind         string
	API          kube.API
	Packages     state.Packages
	Checks       *Checks
	Dependencies *Dependencies
	Objects      *Objects
	Runtimes     *Runtimes
	// APIChanges receives an event when another program starts or stops overwriting the CRDs of
	// packages.
	APIChanges <-chan event.GenericEvent
}

// Reconcile reconciles one revision.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	rev := v1.NewPackage(r.Kind).NewRevision()
	err := r.API.Client.Get(ctx, req.NamespacedName, rev)
	if apierrors.IsNotFound(err) {
		return ctrl.Result{}, r.Runtimes.Set.StopRevision(ctx, r.Kind, req.Name)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	p, err := r.API.OwnerOf(ctx, rev)
	if err != nil || p == nil || rev.GetDeletionTimestamp() != nil ||
		p.GetDeletionTimestamp() != nil && !revision.IsTerminating(p) {
		// The garbage collector deletes a revision whose package does not exist.
		r.Objects.written.Forget(rev.GetUID())
		r.Objects.missed.Forget(rev.GetUID())
		return ctrl.Result{}, cmp.Or(err, r.releaseDeleted(ctx, rev))
	}
	siblings, err := state.RevisionsOf(ctx, r.API.Client, p)
	if err != nil {
		return ctrl.Result{}, err
	}
	set := revision.Set{Revision: rev, Package: p, Siblings: siblings}
	if isReplaced(set) {
		return ctrl.Result{}, nil
	}
	spec := rev.RevisionSpec()
	ctx = contention.WithCause(ctx, revision.Cause(p))
	ctx = logging.With(
		ctx, "kind", r.Kind, "package", p.GetName(), "revision", rev.GetName(), "reference", spec.Image, "digest",
		spec.Digest,
	)
	unhealthy := v1.RevisionUnhealthy
	return r.API.Status.ReportRevocable(ctx, rev, func(ctx context.Context) (ctrl.Result, revision.Summary, error) {
		in, err := r.reconcile(ctx, set)
		rev.RevisionStatus().LastHandledRetry = rev.GetAnnotations()[v1.AnnotationRetry]
		if isRuntimeError(err) {
			unhealthy = v1.RuntimeUnhealthy
		}
		return in.result, in.summary, err
	}, func(ctx context.Context) error {
		return r.revokeDenied(ctx, set)
	}, func(message string) []v1.Condition {
		return []v1.Condition{unhealthy(message)}
	})
}

func (r *Reconciler) reconcile(ctx context.Context, set revision.Set) (*reconciliation, error) {
	in, p, rev := &reconciliation{Set: set}, set.Package, set.Revision
	switch {
	case revision.IsActive(rev) && revision.IsTerminating(p):
		return in, r.reconcileTerminating(ctx, in)
	case revision.IsActive(rev):
		return in, r.reconcileActive(ctx, in)
	case revision.IsTerminating(p):
		return in, in.run(ctx)
	}
	return in, in.run(ctx, r.releaseObjects, r.revokePermissions, r.stopRuntime)
}

// reconcileActive writes all objects of the revision, or none, and runs its runtime. All checks,
// including checks of the dependencies, come before the first write of an object of the package.
func (r *Reconciler) reconcileActive(ctx context.Context, in *reconciliation) error {
	err := in.run(ctx,
		r.acceptConsents,
		r.inheritEndpoint,
		r.readContent,
		r.checkInstall,
		r.ensureDependencies,
		r.awaitKinds,
		r.prepareRuntime,
		r.ensureCertificates,
		r.reserveObjects,
		r.planObjects,
		r.reconcilePermissions,
		r.applyObjects,
		r.waitEstablished,
		r.checkComposed,
		r.deactivateKinds,
		r.ensureRuntime,
		r.reconcileWebhooks,
	)
	if cause := (unreadableError{}); errors.As(err, &cause) {
		return r.keepLastKnown(ctx, in, cause.error)
	}
	deleted, deletion := webhooks.DeleteDenying(ctx, r.API.Cluster, r.API.Live, in.Set, err)
	if deleted && deletion == nil {
		// The denial is not reported: it would be a failure of the version that corrects the webhook.
		return errors.Join(requeue.ErrStale, err)
	}
	return cmp.Or(deletion, in.unaccepted.explain(r.adviseDuplicate(ctx, in, explainPartial(in, err))))
}

// isReplaced reports whether another revision is about to replace an inactive one: an active
// revision that has not established its objects yet, or the one that the package is about to
// activate. The inactive revision is reconciled once the other revision is established, and its
// status shows with the observed generation that it has released its objects.
func isReplaced(s revision.Set) bool {
	if revision.IsActive(s.Revision) || revision.IsTerminating(s.Package) {
		return false
	}
	if i := slices.IndexFunc(s.Siblings, revision.IsActive); i >= 0 {
		return !revision.IsEstablished(s.Siblings[i])
	}
	return revision.PolicyOf(s.Package).Automatic
}
