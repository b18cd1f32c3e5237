package controller

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/controller/expectations"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/controller/reservations"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// revisionReconciler brings the objects of one kind of revision into the cluster
// and keeps them there.
type revisionReconciler struct {
	*world
	kind string
	// written has the objects that were written and that the statuses do not record yet.
	written expectations.Cache[types.UID, map[plan.Ref]plan.Written]
}

// Reconcile brings one revision up to date.
func (r *revisionReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	rev := v1.NewPackage(r.kind).NewRevision()
	err := r.client.Get(ctx, req.NamespacedName, rev)
	if apierrors.IsNotFound(err) {
		return ctrl.Result{}, r.programs.end(ctx, r.kind, req.Name)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	p, err := r.revisionOwner(ctx, rev)
	if err != nil || p == nil || p.GetDeletionTimestamp() != nil && !leavingPackage(p) || rev.GetDeletionTimestamp() != nil {
		// Without its package a revision is garbage, and is collected.
		r.written.Forget(rev.GetUID())
		return ctrl.Result{}, err
	}
	spec := rev.RevisionSpec()
	log := r.log.With("kind", r.kind, "package", p.GetName(), "revision", rev.GetName(), "reference", spec.Image, "digest", spec.Digest)
	about := v1.RevisionUnhealthy
	return r.report(ctx, log, rev, func() (ctrl.Result, verdict, error) {
		result, v, err := r.reconcile(ctx, log, p, rev)
		if ofProgram(err) {
			about = v1.RuntimeUnhealthy
		}
		return result, v, err
	}, func(message string) []v1.Condition {
		return []v1.Condition{about(message)}
	})
}

func (r *revisionReconciler) reconcile(ctx context.Context, log *slog.Logger, p v1.Package, rev v1.PackageRevision) (ctrl.Result, verdict, error) {
	siblings, err := r.revisions(ctx, p)
	if err != nil {
		return ctrl.Result{}, verdict{}, err
	}
	f := family{rev, p, siblings}
	switch {
	case active(rev) && leavingPackage(p):
		return r.accompany(ctx, log, f)
	case leavingPackage(p):
		return ctrl.Result{}, healthy, nil
	case active(rev):
		return r.establish(ctx, log, f)
	case takingOver(p, siblings):
		// The active revision takes control with the same write that brings its
		// content. What it leaves is released when it is done.
		return ctrl.Result{}, healthy, nil
	}
	return ctrl.Result{}, healthy, r.deactivate(ctx, f)
}

// family is a revision with its package and all revisions of that.
type family struct {
	rev      v1.PackageRevision
	pkg      v1.Package
	siblings []v1.PackageRevision
}

func (f family) requester() plan.Requester { return revision.Requester(f.pkg, f.rev, f.siblings) }

// healthy is the verdict on a revision that has what it wants.
var healthy = verdict{ready: true, reason: v1.ReasonHealthy}

// takingOver reports whether another revision is about to take the objects: an
// active one that has not established them yet, or the one that the package is
// about to activate.
func takingOver(p v1.Package, siblings []v1.PackageRevision) bool {
	if i := slices.IndexFunc(siblings, active); i >= 0 {
		return !holds(siblings[i])
	}
	return revision.PolicyOf(p).Automatic
}

// establish makes the revision the controller of all its objects, or of none.
func (r *revisionReconciler) establish(ctx context.Context, log *slog.Logger, f family) (ctrl.Result, verdict, error) {
	if err := r.lend(ctx, f); err != nil {
		return ctrl.Result{}, verdict{}, err
	}
	pkg, source, err := r.obtain(ctx, f.rev)
	if err != nil {
		return r.without(ctx, f, err)
	}
	r.reportLookup(f.rev, nil)
	describe(f.rev, pkg.Meta)
	objects, err := desired.Of(pkg, revision.Additions(f.rev, r.namespace))
	if err != nil {
		return ctrl.Result{}, verdict{}, err
	}
	// What may not be is found out before anything is installed, dependencies included.
	if err := r.permitted(ctx, f, pkg, objects); err != nil {
		return ctrl.Result{}, verdict{}, err
	}
	rules, err := r.checkWebhooksAllowed(ctx, f, objects)
	if err != nil {
		return ctrl.Result{}, verdict{}, err
	}
	if err := r.admit(ctx, log, f, pkg.Meta); err != nil {
		return r.waiting(f.rev, err)
	}
	// Everything that the program needs and that can be had without it is had before
	// anything is written, so that what is installed stays whole when it cannot.
	job, err := r.prepare(ctx, f, pkg.Meta, objects, source)
	if err != nil {
		return ctrl.Result{}, verdict{}, err
	}
	trust, err := r.certify(ctx, f, job)
	if err != nil {
		return ctrl.Result{}, verdict{}, err
	}
	objects.Trust(trust.service, trust.authorities)
	held, err := r.write(ctx, log, f, objects)
	if err != nil {
		return ctrl.Result{}, verdict{}, err
	}
	result, v, err := r.established(ctx, f.rev, objects)
	if err != nil || !v.ready {
		return result, v, err
	}
	if err := r.grant(ctx, f, pkg, objects, job); err != nil {
		return ctrl.Result{}, verdict{}, err
	}
	result, v, err = r.operate(ctx, log, f, job)
	if err != nil {
		return result, v, err
	}
	again, err := r.reconcileWebhooks(ctx, log, f, objects, held, job, v.ready, len(rules) > 0)
	return requeue.By(requeue.By(result, trust.due, r.now()), again, r.now()), v, err
}

// write plans the objects and carries the plan out, but for what is held until the
// program answers.
func (r *revisionReconciler) write(ctx context.Context, log *slog.Logger, f family, objects *desired.Objects) (held plan.Plan, err error) {
	refs := objects.Refs()
	reservation := r.reservations.Of(f.pkg)
	if err := reservation.Reserve(refs); err != nil {
		return plan.Plan{}, err
	}
	live, err := r.cluster.Metadata(ctx, refs)
	if err != nil {
		return plan.Plan{}, err
	}
	p, err := r.cluster.Preflight(ctx, plan.Establish(objects.Desired(), live, r.knownWrites(f.siblings), f.requester()), objects.Content)
	if err != nil {
		return plan.Plan{}, err
	}
	if err := reservation.Commit(p); err != nil {
		return plan.Plan{}, err
	}
	now, held := p.Hold()
	if len(p.Refusals) == 0 {
		f.rev.RevisionStatus().ObjectRefs = objectRefs(refs, live, held)
	}
	return held, r.carry(ctx, log, f, objects, now)
}

// carry carries a plan out, or as much of it as can be, and records what was written.
func (r *revisionReconciler) carry(ctx context.Context, log *slog.Logger, f family, objects *desired.Objects, p plan.Plan) error {
	started := r.now()
	written, err := r.cluster.Run(ctx, p, objects.Content)
	r.metrics.wrote(p, written)
	r.recordWrites(f.rev, written)
	record(f.rev.RevisionStatus(), written)
	if err != nil {
		return err
	}
	if len(written) > 0 {
		log.InfoContext(ctx, "objects written", "written", len(written), "unchanged", p.Unchanged, "took", r.now().Sub(started).Round(time.Millisecond))
	}
	return nil
}

// admit refuses a revision that cannot work in this cluster, before anything of
// it is written.
func (r *revisionReconciler) admit(ctx context.Context, log *slog.Logger, f family, meta xpkg.Meta) error {
	if !f.rev.RevisionSpec().IgnoreCrossplaneConstraints {
		if err := r.core.Check(ctx, meta); err != nil {
			return err
		}
	}
	return r.dependencies(ctx, log, f, meta)
}

// waiting says that a revision waits for what is on its way. That is no failure, and
// is not tried again and again: whatever becomes of a package wakes those that are known
// to wait. What arrives before that is known is seen by a second look, soon.
func (r *revisionReconciler) waiting(rev v1.PackageRevision, err error) (ctrl.Result, verdict, error) {
	if !errors.Is(err, ErrDependencyComing) {
		return ctrl.Result{}, verdict{}, err
	}
	v, again := failed(err), requeue.LastRetry
	if rev.GetCondition(v1.TypeReady).Reason != v.reason {
		again = requeue.FirstRetry
	}
	rev.SetConditions(metav1.NewTime(r.now()), v1.RevisionUnhealthy(v.message))
	return ctrl.Result{RequeueAfter: requeue.Jitter(again)}, v, nil
}

// obtain returns the content of a revision, and records its image and the ImageConfigs that apply.
func (r *revisionReconciler) obtain(ctx context.Context, rev v1.PackageRevision) (*xpkg.Package, state.Source, error) {
	pkg, source, err := r.packages().ReadRevision(ctx, rev)
	if !source.Digest.IsZero() {
		status := rev.RevisionStatus()
		status.AppliedImageConfigRefs, status.ResolvedImage = source.Route.Applied, source.Origin.Ref.WithDigest(source.Digest).String()
	}
	return pkg, source, err
}

// describe copies what the package says of itself to the status.
func describe(rev v1.PackageRevision, meta xpkg.Meta) {
	rev.RevisionStatus().Capabilities = meta.Capabilities
	rev.RevisionStatus().PermissionRequests = meta.PermissionRequests
}

// objectRefs lists what a revision may have written: also what is not carried out to
// its end, but nothing that is not begun.
func objectRefs(refs []plan.Ref, live map[plan.Ref]plan.Live, held plan.Plan) []v1.TypedReference {
	out := make([]v1.TypedReference, 0, len(refs))
	for _, ref := range refs {
		l, exists := live[ref]
		if !exists && slices.ContainsFunc(held.Changes, func(c plan.Change) bool { return c.Ref == ref }) {
			continue
		}
		out = append(out, reference(ref, plan.Written{UID: l.UID, Generation: l.Generation}))
	}
	return out
}

func reference(ref plan.Ref, w plan.Written) v1.TypedReference {
	return v1.TypedReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name, UID: w.UID, Generation: w.Generation}
}

// record adds what was written to what a revision lists.
func record(status *v1.PackageRevisionStatus, written map[plan.Ref]plan.Written) {
	left := maps.Clone(written)
	for i, r := range status.ObjectRefs {
		ref := plan.Ref{APIVersion: r.APIVersion, Kind: r.Kind, Name: r.Name}
		if w, ok := written[ref]; ok {
			status.ObjectRefs[i] = reference(ref, w)
			delete(left, ref)
		}
	}
	for _, ref := range slices.SortedFunc(maps.Keys(left), plan.Ref.Compare) {
		status.ObjectRefs = append(status.ObjectRefs, reference(ref, left[ref]))
	}
}

// deactivate makes the revision a mere owner of its objects. What it once
// established is known from its status; a revision that never was active reads
// its package to know what it would bring. Of a kind that the cluster does not
// know any more there is nothing to let go of.
func (r *revisionReconciler) deactivate(ctx context.Context, f family) error {
	refs, err := r.brings(ctx, f.rev)
	if err != nil {
		return err
	}
	live, err := r.cluster.Metadata(ctx, refs)
	if err != nil && !errors.Is(err, apply.ErrKindNotServed) {
		return err
	}
	if !slices.ContainsFunc(f.siblings, active) {
		// A webhook that nothing serves would block all that follows.
		if err := r.deleteWebhooks(ctx, f, nil); err != nil {
			return err
		}
	}
	p := plan.Deactivate(refs, live, f.requester())
	if len(p.Changes) > 0 {
		// One that was collected a moment ago would only put back what the garbage
		// collector has taken from its objects.
		if err := r.stillThere(ctx, f.rev, f.pkg.NewRevision()); err != nil {
			return err
		}
	}
	written, err := r.cluster.Run(ctx, p, nil)
	r.metrics.wrote(p, written)
	if err != nil {
		return err
	}
	if err := r.revoke(ctx, f); err != nil {
		return err
	}
	if !slices.ContainsFunc(f.siblings, active) {
		r.reservations.Release(reservations.KeyOf(f.pkg))
		if err := r.standDown(ctx, f); err != nil {
			return failedProgram(err)
		}
	}
	r.forgetProgram(f)
	f.rev.SetConditions(metav1.NewTime(r.now()), v1.RevisionHealthy())
	return nil
}

// brings names the objects of a revision.
func (r *revisionReconciler) brings(ctx context.Context, rev v1.PackageRevision) ([]plan.Ref, error) {
	if refs := revision.Objects(rev); len(refs) > 0 {
		return refs, nil
	}
	pkg, _, err := r.obtain(ctx, rev)
	if err != nil {
		return nil, err
	}
	describe(rev, pkg.Meta)
	objects, err := desired.Of(pkg, revision.Additions(rev, r.namespace))
	if err != nil {
		return nil, err
	}
	return objects.Refs(), nil
}

func active(rev v1.PackageRevision) bool { return rev.RevisionSpec().DesiredState == v1.RevisionActive }

// waitsForDependencies reports whether a revision could become healthy because
// another package was installed or changed.
func waitsForDependencies(rev v1.PackageRevision) bool {
	s := rev.RevisionStatus()
	return rev.RevisionSpec().DesiredState == v1.RevisionActive &&
		(s.InstalledDependencies < s.FoundDependencies || s.InvalidDependencies > 0)
}

// recordWrites records the objects that were just written for a revision.
func (r *revisionReconciler) recordWrites(rev v1.PackageRevision, written map[plan.Ref]plan.Written) {
	if len(written) == 0 {
		return
	}
	r.written.Update(rev.GetUID(), func(all map[plan.Ref]plan.Written) map[plan.Ref]plan.Written {
		out := maps.Clone(all)
		if out == nil {
			out = map[plan.Ref]plan.Written{}
		}
		maps.Copy(out, written)
		return out
	})
}

// knownWrites returns the last writes of the objects of a package: those that the statuses of its
// revisions record, and those that they do not record yet.
func (r *revisionReconciler) knownWrites(revisions []v1.PackageRevision) map[plan.Ref]plan.Written {
	known := revision.Written(revisions)
	for _, rev := range revisions {
		pending, _ := r.written.Pending(rev.GetUID(), func(all map[plan.Ref]plan.Written) bool {
			for ref, w := range all {
				if w.Generation > known[ref].Generation || w.UID != known[ref].UID {
					return false
				}
			}
			return true
		})
		for ref, w := range pending {
			if w.Generation > known[ref].Generation || w.UID != known[ref].UID {
				known[ref] = w
			}
		}
	}
	return known
}
