// Package packages implements the controller of packages. It resolves the reference of a package to
// a digest, once unless the pull policy is Always, reads the content, and maintains the package's
// revisions.
package packages

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/contention"
	"github.com/xpkg-dev/xpkg/internal/controller/kube"
	"github.com/xpkg-dev/xpkg/internal/controller/logging"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/controller/reservations"
	"github.com/xpkg-dev/xpkg/internal/controller/runtimes"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/state"
)

// Reconciler reconciles the packages of one kind.
type Reconciler struct {
	Kind         string
	API          kube.API
	Resolver     *Resolver
	Rollback     revision.RollbackPolicy
	Runtimes     *runtimes.Set
	Reservations *reservations.Reservations
	Counter      Counter
	// Counts are the custom resources of packages.
	Counts *Counts
	// Unprotected deletes packages with their custom resources, without an answer of a user.
	Unprotected bool
	// Holder returns the transaction that changes a package, or "". Held receives an event when a transaction holds or
	// releases a package.
	Holder func(kind, name string) string
	Held   <-chan event.GenericEvent
	// APIChanges receives an event when another program starts or stops overwriting the CRDs of
	// packages.
	APIChanges <-chan event.GenericEvent
}

// Reconcile reconciles one package.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	p := v1.NewPackage(r.Kind)
	err := r.API.Client.Get(ctx, req.NamespacedName, p)
	if apierrors.IsNotFound(err) {
		key := reservations.Key{Kind: r.Kind, Name: req.Name}
		r.Reservations.Release(key)
		return ctrl.Result{}, errors.Join(r.Runtimes.StopPackage(ctx, key), r.deleteLeft(ctx, req.Name))
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	reconcile := r.reconcile
	if p.GetDeletionTimestamp() != nil {
		r.Resolver.pending.Forget(p.GetUID())
		if !revision.IsTerminating(p) {
			// The garbage collector deletes the revisions and the objects.
			return ctrl.Result{}, nil
		}
		reconcile = r.reconcileDelete
	}
	ctx = contention.WithCause(ctx, revision.Cause(p))
	ctx = logging.With(ctx, "kind", r.Kind, "package", p.GetName(), "reference", p.PackageSpec().Package)
	return r.API.Status.Report(ctx, p, func(ctx context.Context) (ctrl.Result, revision.Summary, error) {
		return reconcile(ctx, p)
	}, func(message string) []v1.Condition {
		return []v1.Condition{v1.Unpacking(message), v1.Unhealthy(message)}
	})
}

func (r *Reconciler) reconcile(ctx context.Context, p v1.Package) (ctrl.Result, revision.Summary, error) {
	r.setHolder(p)
	revisions, live, err := r.revisionsOf(ctx, p)
	if err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	if r.Rollback.Decide(p, revisions) {
		summary, err := r.prepareRollback(ctx, p, revisions)
		return ctrl.Result{RequeueAfter: time.Millisecond}, summary, err
	}
	p.PackageStatus().LastHandledRetry = p.GetAnnotations()[v1.AnnotationRetry]
	resolved, err := r.Resolver.resolve(ctx, p, revisions)
	if err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	spec := p.PackageSpec()
	name := revision.Name(p, resolved.Digest.String(), revisions)
	pkg, err := r.Resolver.Packages.Read(ctx, resolved.Origin, resolved.Digest, spec.Package, spec.PackagePullPolicy)
	if err != nil {
		return r.keepLastKnown(p, resolved, name, revisions, err)
	}
	if err := revision.Installable(p, pkg); err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	if err := r.ensureFinalizer(ctx, p); err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	if !live && !slices.ContainsFunc(revisions, func(rev v1.PackageRevision) bool { return rev.GetName() == name }) {
		// The cache may be behind. All revisions must be known before one is created, so that two
		// revisions are never active at once.
		if revisions, err = r.API.Revisions.Of(ctx, p); err != nil {
			return ctrl.Result{}, revision.Summary{}, err
		}
		name = revision.Name(p, resolved.Digest.String(), revisions)
	}
	if live && len(revisions) == 0 {
		// A revision may have been restored meanwhile.
		if seen, err := state.RevisionsOf(ctx, r.API.Client, p); err != nil || len(seen) > 0 {
			return ctrl.Result{}, revision.Summary{}, cmp.Or(err, requeue.ErrStale)
		}
	}
	uses, err := state.UsesOf(pkg, revisions, name)
	if err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	transition := revision.Next(p, pkg.Meta, resolved.Digest.String(), revisions, uses)
	if err := r.applyTransition(ctx, p, transition); err != nil {
		return ctrl.Result{}, revision.Summary{}, err
	}
	r.Counts.set(p)
	status := p.PackageStatus()
	status.CurrentRevision, status.CurrentIdentifier = name, spec.Package
	status.ResolvedPackage, status.ResolvedDigest = resolved.Image, resolved.Digest.String()
	r.Rollback.Begin(p, transition.Decision, revisions)
	summary := r.setHealth(p, name, transition.Activate, revisions)
	return r.recordLookup(p, revisions, resolved), summary, nil
}

// revisionsOf returns the revisions of a package, and reports whether they were read from the API
// server. It reads them from the API server for a package without a status: the package may have
// been restored from a backup together with revisions that the cache does not have yet, and it
// keeps their digest even if its tag has moved.
func (r *Reconciler) revisionsOf(
	ctx context.Context, p v1.Package,
) (revisions []v1.PackageRevision, live bool, err error) {
	without := p.PackageStatus().CurrentRevision == ""
	revisions, err = state.RevisionsOf(ctx, r.API.Client, p)
	if err != nil || !without || len(revisions) == 0 && r.API.Revisions.IsNew(p) {
		return revisions, without, err
	}
	revisions, err = r.API.Revisions.Of(ctx, p)
	return revisions, true, err
}
