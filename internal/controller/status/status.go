// Package status reports the results of reconciliations: the conditions in the statuses of packages and
// revisions, events for the conditions that changed, and when to retry.
package status

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/controller/contention"
	"github.com/xpkg-dev/xpkg/internal/controller/expectations"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// BlockedPause is the interval between checks of an object that is not reconciled.
const BlockedPause = 10 * time.Second

// Reporter writes the statuses of packages and revisions.
type Reporter struct {
	Client client.Client
	Events events.EventRecorder
	Writes *expectations.Versions
	// CountFailure counts the failures of reconciliations by code.
	CountFailure func(code string)
	Now          func() time.Time
	// Blocked returns the reason why the manager reconciles no packages of a kind, or nil.
	Blocked func(ctx context.Context, kind string) error
}

// Reconcile is one reconciliation of an object. It may change the status of the object.
type Reconcile func(ctx context.Context) (ctrl.Result, revision.Summary, error)

// Report runs a reconciliation, and writes the status of the object if it changed. It reports a
// failure in the conditions Ready, Reconciling and Stalled, and in the conditions that unhealthy returns for
// its message. The class of the failure determines whether and when the reconciliation is retried.
func (r *Reporter) Report(
	ctx context.Context, o Object, reconcile Reconcile, unhealthy func(message string) []v1.Condition,
) (ctrl.Result, error) {
	return r.ReportRevocable(ctx, o, reconcile, func(context.Context) error { return nil }, unhealthy)
}

// ReportRevocable is like Report, for an object that may lose its permission to run. A pause does not defend against
// that: revoke is called for a paused object, stops what is not allowed any more, and returns the reason.
func (r *Reporter) ReportRevocable(
	ctx context.Context, o Object, reconcile Reconcile, revoke func(context.Context) error,
	unhealthy func(message string) []v1.Condition,
) (ctrl.Result, error) {
	if r.Writes.IsBehind(o) {
		return ctrl.Result{RequeueAfter: expectations.Pause}, nil
	}
	before := o.DeepCopyObject().(Object)
	// A paused package can be deleted.
	if v1.IsPaused(o) && o.GetDeletionTimestamp() == nil {
		return r.reportPaused(ctx, before, o, revoke(ctx), unhealthy)
	}
	if o.GetCondition(v1.TypeSynced).Reason == v1.ReasonPaused {
		o.SetConditions(r.now(), v1.Synced())
	}
	// A package can always be deleted.
	if o.GetDeletionTimestamp() == nil {
		if err := r.Blocked(ctx, o.PackageKind()); err != nil {
			return r.reportBlocked(ctx, before, o, err)
		}
	}
	result, summary, err := reconcile(ctx)
	if requeue.IsStale(err) {
		return requeue.Soon(), nil
	}
	if err != nil {
		if ctx.Err() != nil {
			return ctrl.Result{}, ctx.Err()
		}
		err = apply.ClassifyForbidden(err)
		summary = Failed(err)
		o.SetConditions(r.now(), unhealthy(summary.Message)...)
	}
	Set(o, r.now(), summary)
	if werr := r.publish(ctx, before, o); werr != nil {
		return afterPublish(ctx, werr)
	}
	if err == nil {
		return result, nil
	}
	r.CountFailure(errcode.From(err).Code.Name)
	return requeue.OnError(ctx, err)
}

// reportPaused reports a paused object, and the reason why what it ran was stopped, or nil.
func (r *Reporter) reportPaused(
	ctx context.Context, before, o Object, revoked error, unhealthy func(message string) []v1.Condition,
) (ctrl.Result, error) {
	if requeue.IsStale(revoked) {
		return requeue.Soon(), nil
	}
	if ctx.Err() != nil {
		return ctrl.Result{}, ctx.Err()
	}
	o.SetConditions(r.now(), paused(o))
	if revoked != nil {
		summary := Failed(revoked)
		for _, c := range unhealthy(summary.Message) {
			if c.Type != v1.TypeSynced {
				o.SetConditions(r.now(), c)
			}
		}
		Set(o, r.now(), summary)
	}
	if err := r.publish(ctx, before, o); err != nil || revoked == nil {
		return afterPublish(ctx, err)
	}
	r.CountFailure(errcode.From(revoked).Code.Name)
	return requeue.OnError(ctx, revoked)
}

// reportBlocked reports an object that is not reconciled. Its installed objects stay, and so do its
// other conditions.
func (r *Reporter) reportBlocked(ctx context.Context, before, o Object, err error) (ctrl.Result, error) {
	summary := Failed(err)
	switch o.(type) {
	case v1.PackageRevision:
		o.SetConditions(r.now(), v1.RevisionUnhealthy(summary.Message))
	case v1.Package:
		o.SetConditions(r.now(), v1.Unhealthy(summary.Message))
	}
	Set(o, r.now(), summary)
	if werr := r.publish(ctx, before, o); werr != nil {
		return afterPublish(ctx, werr)
	}
	return ctrl.Result{RequeueAfter: requeue.Jitter(BlockedPause)}, nil
}

func (r *Reporter) now() metav1.Time { return metav1.NewTime(r.Now()) }

// SetProgressing writes a message about a step that may take long into the Ready condition, before
// the step begins. A failure of the write is ignored. An object that failed before keeps its
// failure while it is retried.
func (r *Reporter) SetProgressing(ctx context.Context, o Object, message string) {
	if reason := o.GetCondition(v1.TypeReady).Reason; reason != "" && reason != v1.ReasonProgressing {
		return
	}
	interim := o.DeepCopyObject().(Object)
	Set(interim, r.now(), revision.Progressing(message))
	_, interimGeneration := statusOf(interim)
	_, generation := statusOf(o)
	*interimGeneration = *generation
	r.writeInterim(ctx, o, interim)
}

// ReportProgress writes the conditions of an object, and a message about a step that takes long into its Ready
// condition, while the step goes on. A failure of the write is ignored.
func (r *Reporter) ReportProgress(ctx context.Context, o Object, message string) {
	interim := o.DeepCopyObject().(Object)
	Set(interim, r.now(), revision.Progressing(message))
	r.writeInterim(ctx, o, interim)
}

// writeInterim writes the status of a copy of an object whose reconciliation goes on.
func (r *Reporter) writeInterim(ctx context.Context, o, interim Object) {
	if r.Client.Status().Update(ctx, interim) == nil {
		o.SetResourceVersion(interim.GetResourceVersion())
		r.Writes.Wrote(o)
	}
}

// SetLookupResult reports in the Synced condition whether content could be looked up or read. It
// does not change the health of the object.
func (r *Reporter) SetLookupResult(o Object, err error) {
	switch {
	case err != nil:
		o.SetConditions(r.now(), v1.LookupFailed(errcode.Message(err)))
	case o.GetCondition(v1.TypeSynced).Reason == v1.ReasonLookupFailed,
		o.GetCondition(v1.TypeSynced).Reason == v1.ReasonSynced:
		// The condition also gets the current generation.
		o.SetConditions(r.now(), v1.Synced())
	}
}

// publish writes the status, and records events for its changes. If the write fails, it records
// none, because the next reconciliation makes the same changes.
func (r *Reporter) publish(ctx context.Context, before, o Object) error {
	if err := r.write(ctx, before, o); err != nil {
		return err
	}
	r.recordEvents(before, o)
	return nil
}

// paused returns the condition of a paused object. It keeps the message of another controller of
// packages, such as Crossplane core: with different messages, the two would keep overwriting each
// other's condition.
func paused(o Object) v1.Condition {
	if c := o.GetCondition(v1.TypeSynced); c.Status == corev1.ConditionFalse && c.Reason == v1.ReasonPaused {
		return v1.Paused(c.Message)
	}
	return v1.Paused(fmt.Sprintf("Reconciliation is paused by the annotation %s.", v1.AnnotationPaused))
}

// afterPublish returns the result of a reconciliation that ends with the write of the status, and
// err, the result of that write.
func afterPublish(ctx context.Context, err error) (ctrl.Result, error) {
	if _, stopped := contention.RetryAt(err); stopped {
		return requeue.OnError(ctx, err)
	}
	if requeue.IsStale(err) {
		return requeue.Soon(), nil
	}
	return ctrl.Result{}, err
}

func (r *Reporter) write(ctx context.Context, before, o Object) error {
	if equality.Semantic.DeepEqual(before, o) {
		return nil
	}
	if err := r.Client.Status().Update(ctx, o); err != nil {
		if o.GetDeletionTimestamp() != nil && apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("write status: %w", err)
	}
	r.Writes.Wrote(o)
	return nil
}
