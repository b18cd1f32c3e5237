package controller

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/expectations"
	"github.com/xpkg-dev/xpkg/internal/controller/reservations"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/state"
)

// packageReconciler turns a package into revisions: it resolves the reference to
// a digest once, obtains the content, and keeps the revision of that content.
type packageReconciler struct {
	*world
	kind string
	// resolved has the digests that were looked up and that the statuses do not record yet.
	resolved expectations.Cache[types.UID, resolvedImage]
}

// Reconcile brings one package up to date.
func (r *packageReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	p := v1.NewPackage(r.kind)
	err := r.client.Get(ctx, req.NamespacedName, p)
	if apierrors.IsNotFound(err) {
		r.reservations.Release(reservations.Key{Kind: r.kind, Name: req.Name})
		return ctrl.Result{}, r.programs.endAll(ctx, reservations.Key{Kind: r.kind, Name: req.Name})
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	look := r.reconcile
	if p.GetDeletionTimestamp() != nil {
		// Revisions and objects go with their owner: they are garbage collected.
		r.resolved.Forget(p.GetUID())
		if !leavingPackage(p) {
			return ctrl.Result{}, nil
		}
		look = r.farewell
	}
	log := r.log.With("kind", r.kind, "package", p.GetName(), "reference", p.PackageSpec().Package)
	return r.report(ctx, log, p, func() (ctrl.Result, verdict, error) {
		return look(ctx, p)
	}, func(message string) []v1.Condition {
		return []v1.Condition{v1.Unpacking(message), v1.Unhealthy(message)}
	})
}

func (r *packageReconciler) reconcile(ctx context.Context, p v1.Package) (ctrl.Result, verdict, error) {
	revisions, err := r.revisions(ctx, p)
	if err != nil {
		return ctrl.Result{}, verdict{}, err
	}
	if r.gate.judge(p, revisions) {
		// Neither of the two revisions may have a runtime that serves now.
		if err := r.deleteWebhooks(ctx, family{p.NewRevision(), p, revisions}, nil); err != nil {
			return ctrl.Result{}, verdict{}, err
		}
		// It is carried out as soon as it is written down.
		return ctrl.Result{RequeueAfter: time.Millisecond}, r.gate.verdict(p.PackageStatus().Rollback, verdict{}), nil
	}
	pin, err := r.resolve(ctx, p, revisions)
	if err != nil {
		return ctrl.Result{}, verdict{}, err
	}
	spec := p.PackageSpec()
	name := revision.Name(p, pin.Digest.String())
	pkg, err := r.read(ctx, pin.Origin, pin.Digest, spec.Package, spec.PackagePullPolicy)
	if err != nil {
		return r.without(p, pin, name, revisions, err)
	}
	if err := revision.Installable(p, pkg.Meta); err != nil {
		return ctrl.Result{}, verdict{}, err
	}
	if err := r.keepProgram(ctx, p); err != nil {
		return ctrl.Result{}, verdict{}, err
	}
	if !slices.ContainsFunc(revisions, func(rev v1.PackageRevision) bool { return rev.GetName() == name }) {
		// The cache may be behind. Before a revision is made, all others have to be
		// known, so that two are never active at once.
		if revisions, err = r.revisionsNow(ctx, p); err != nil {
			return ctrl.Result{}, verdict{}, err
		}
	}
	transition := revision.Next(p, pkg.Meta, pin.Digest.String(), revisions)
	if err := r.applyTransition(ctx, p, transition); err != nil {
		return ctrl.Result{}, verdict{}, err
	}
	status := p.PackageStatus()
	status.CurrentRevision, status.CurrentIdentifier = name, spec.Package
	status.ResolvedPackage, status.ResolvedDigest = pin.Image, pin.Digest.String()
	r.gate.begin(p, transition.Decision, revisions)
	v := r.health(p, name, transition.Activate, revisions)
	return r.next(p, revisions, pin), v, nil
}

// next says when a package is looked at again by itself: when an activation has
// to be done; with the policy Always, or after a failure, when a registry is to be
// asked again (packages guide, "spec.packagePullPolicy"). A digest never changes its
// content.
func (r *packageReconciler) next(p v1.Package, revisions []v1.PackageRevision, pin state.Resolution) ctrl.Result {
	r.reportLookup(p, pin.LookupError)
	left := max(0, r.gate.left(p, revisions))
	follows := p.PackageSpec().PackagePullPolicy == corev1.PullAlways && pin.Origin.Ref.Digest.IsZero()
	if !follows && pin.LookupError == nil {
		return ctrl.Result{RequeueAfter: left}
	}
	pause := r.lookAgain(pin.LookupError)
	if left > 0 {
		pause = min(left, pause)
	}
	return ctrl.Result{RequeueAfter: pause}
}

// revisionOwner finds the package of a revision.
func (w *world) revisionOwner(ctx context.Context, rev v1.PackageRevision) (v1.Package, error) {
	p := v1.NewPackage(rev.PackageKind())
	err := w.client.Get(ctx, types.NamespacedName{Name: rev.GetLabels()[v1.LabelPackage]}, p)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return p, err
}
