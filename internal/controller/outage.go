package controller

import (
	"context"
	"slices"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/oci/remote"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ctrl "sigs.k8s.io/controller-runtime"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// outage reports whether a failure to read content says nothing of what is installed
// from it: the cache was lost, and the registry does not give it now.
func outage(err error) bool {
	class := errcode.From(err).Code.Class
	return class.Retry && class != errcode.Internal
}

// without is the verdict on an active revision whose content cannot be read now. What
// was established stays as healthy as it was while all of it is there.
func (r *revisionReconciler) without(ctx context.Context, f family, cause error) (ctrl.Result, verdict, error) {
	if !outage(cause) || !holds(f.rev) {
		return ctrl.Result{}, verdict{}, cause
	}
	refs := revision.Objects(f.rev)
	live, err := r.cluster.Metadata(ctx, refs)
	if err != nil {
		return ctrl.Result{}, verdict{}, err
	}
	if slices.ContainsFunc(refs, func(ref plan.Ref) bool { return !f.requester().Controls(live[ref]) }) {
		return ctrl.Result{}, verdict{}, cause
	}
	r.reportLookup(f.rev, cause)
	return ctrl.Result{RequeueAfter: r.lookAgain(cause)}, healthy, nil
}

// without is the verdict on a package whose content cannot be read now, by its
// revisions: as long as the spec asks for what it asked for before.
func (r *packageReconciler) without(p v1.Package, pin state.Resolution, current string, revisions []v1.PackageRevision, cause error) (ctrl.Result, verdict, error) {
	made := slices.ContainsFunc(revisions, func(rev v1.PackageRevision) bool { return rev.GetName() == current })
	status := p.PackageStatus()
	if !outage(cause) || !made || status.CurrentRevision != current || status.CurrentIdentifier != p.PackageSpec().Package {
		return ctrl.Result{}, verdict{}, cause
	}
	running := ""
	if i := slices.IndexFunc(revisions, active); i >= 0 {
		running = revisions[i].GetName()
	}
	pin.LookupError = cause
	v := r.health(p, current, running, revisions)
	return r.next(p, revisions, pin), v, nil
}

// reportLookup says that content could not be looked up or read, without calling what
// is installed unhealthy.
func (w *world) reportLookup(o object, err error) {
	now := metav1.NewTime(w.now())
	switch {
	case err != nil:
		o.SetConditions(now, v1.LookupFailed(errcode.Message(err)))
	case o.GetCondition(v1.TypeSynced).Reason == v1.ReasonLookupFailed, o.GetCondition(v1.TypeSynced).Reason == v1.ReasonSynced:
		// It holds for this generation, also when it did for the one before.
		o.SetConditions(now, v1.Synced())
	}
}

// lookAgain is when a registry is asked again: after the interval, or when one that
// wants fewer requests says so.
func (w *world) lookAgain(err error) time.Duration {
	pause := w.poll
	if at, ok := remote.RetryAt(err); ok {
		pause = max(pause, at.Sub(w.now()))
	}
	return requeue.Jitter(pause)
}
