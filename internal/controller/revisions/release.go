package revisions

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/controller/reservations"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
)

// releaseObjects gives up control of the objects of an inactive revision that the active one does
// not contain. Without an active revision, it also deletes the webhook configurations of the
// package.
func (r *Reconciler) releaseObjects(ctx context.Context, in *reconciliation) error {
	refs, err := r.Packages.ObjectRefs(ctx, in.Revision)
	if err != nil {
		return err
	}
	if !revision.AnyActive(in.Siblings) {
		// No runtime will serve the webhooks of the package.
		if err := r.deleteWebhooks(ctx, in, webhooks.Any); err != nil {
			return err
		}
	}
	p, written, err := r.API.Release(ctx, in.Set, refs)
	r.Objects.CountWrites(p, written)
	return err
}

// stopRuntime stops the runtime of an inactive revision of a package without an active revision,
// and frees the reservations of the package. If there is an active revision, its reconciliation
// stops the runtime. The reason why a runtime was unhealthy stays in the status, because it
// explains the rollback.
func (r *Reconciler) stopRuntime(ctx context.Context, in *reconciliation) error {
	if !revision.AnyActive(in.Siblings) {
		r.Objects.Reservations.Release(reservations.KeyOf(in.Package))
		if err := r.stopRuntimeOf(ctx, in); err != nil {
			return err
		}
	}
	if in.Revision.RuntimeStatus() != nil && !r.runsExternally(in) {
		conditions := &in.Revision.RevisionStatus().ConditionedStatus
		conditions.RemoveCondition(v1.TypeRuntimeActive)
		if in.Revision.GetCondition(v1.TypeRuntimeHealthy).Status == corev1.ConditionTrue {
			conditions.RemoveCondition(v1.TypeRuntimeHealthy)
		}
	}
	in.Revision.SetConditions(r.API.Time(), v1.RevisionHealthy())
	return nil
}

// stopRuntimeOf stops the runtime of a revision, unless a revision of the package was activated meanwhile.
func (r *Reconciler) stopRuntimeOf(ctx context.Context, in *reconciliation) error {
	by := r.Runtimes.Of(r.Kind, in.Package.GetName())
	if by == nil {
		return nil
	}
	unlock, err := r.Runtimes.Lock(ctx, reservations.KeyOf(in.Package))
	if err != nil {
		return err
	}
	defer unlock()
	siblings, err := r.API.Revisions.Of(ctx, in.Package)
	if err != nil {
		return err
	}
	if revision.AnyActive(siblings) {
		return requeue.ErrStale
	}
	_, err = by.Stop(ctx, in.Requester().Revision)
	return err
}
