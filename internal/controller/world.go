package controller

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/certificates"
	"github.com/xpkg-dev/xpkg/internal/controller/expectations"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/controller/reservations"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// Content reads the content of packages.
type Content = state.Content

// Origins locates images.
type Origins = state.Origins

// world is what the controllers share.
type world struct {
	client client.Client
	// live reads from the API server itself, and not from what was watched of it.
	live         client.Reader
	cluster      *apply.Cluster
	content      Content
	origins      Origins
	events       events.EventRecorder
	log          *slog.Logger
	metrics      *metrics
	reservations *reservations.Reservations
	// programs are who runs the programs of packages.
	programs *programs
	// processes carry what is told of processes to the controllers, by kind.
	processes map[string]chan event.GenericEvent
	// certificates are those of the programs.
	certificates *certificates.Store
	core         *crossplane.Checker
	// writes are those of its own that were not seen yet.
	writes *expectations.Versions
	// clusterID tells clusters apart that share a package cache.
	clusterID string
	// lists are of what the API server itself has.
	lists lists
	now   func() time.Time
	poll  time.Duration
	gate  gate
	// settleTime is how long a program has to run before it is available; zero for the default
	// of its runtime.
	settleTime time.Duration
	needs      *state.Dependencies
	// settling says how what is missing is installed; nil when it is not.
	settling *settling
	// namespace is where the programs of packages run.
	namespace string
	// permissions say how rights are given; nil when somebody else gives them.
	permissions *Permissions
	held        *permission.Held
	// prober proves that the endpoints of webhooks serve.
	prober webhooks.Prober
}

// object is what a package and a revision have in common for reporting.
type object interface {
	metav1.Object
	runtime.Object
	v1.Conditioned
}

// report runs one reconciliation and writes the status when it differs. A
// failure becomes conditions; whether and when it is tried again follows from its
// class.
func (w *world) report(ctx context.Context, log *slog.Logger, o object, reconcile func() (ctrl.Result, verdict, error), unhealthy func(message string) []v1.Condition) (ctrl.Result, error) {
	if w.writes.IsBehind(o) {
		return ctrl.Result{RequeueAfter: expectations.Pause}, nil
	}
	before := o.DeepCopyObject()
	now := metav1.NewTime(w.now())
	// Who deletes a package wants it to go, whatever he wanted of it before.
	if v1.IsPaused(o) && o.GetDeletionTimestamp() == nil {
		o.SetConditions(now, v1.Paused(fmt.Sprintf("Reconciliation is paused by the annotation %s.", v1.AnnotationPaused)))
		return ctrl.Result{}, w.publish(ctx, before.(object), o)
	}
	unpause(o, now)
	result, v, err := reconcile()
	if requeue.IsStale(err) {
		return requeue.Soon(), nil
	}
	if err != nil {
		if ctx.Err() != nil {
			return ctrl.Result{}, ctx.Err()
		}
		v = failed(err)
		o.SetConditions(metav1.NewTime(w.now()), unhealthy(v.message)...)
	}
	settle(o, metav1.NewTime(w.now()), v)
	werr := w.publish(ctx, before.(object), o)
	if requeue.IsStale(werr) {
		return requeue.Soon(), nil
	}
	if werr != nil {
		return ctrl.Result{}, werr
	}
	if err == nil {
		return result, nil
	}
	w.metrics.failures.WithLabelValues(errcode.From(err).Code.Name).Inc()
	return requeue.OnError(ctx, log, err)
}

// say writes down what is under way, in the middle of a reconciliation and before
// something that takes its time. It is for people, so that it may fail. What has
// failed before keeps saying so while it is tried again.
func (w *world) say(ctx context.Context, o object, message string) {
	if reason := o.GetCondition(v1.TypeReady).Reason; reason != "" && reason != v1.ReasonProgressing {
		return
	}
	interim := o.DeepCopyObject().(object)
	settle(interim, metav1.NewTime(w.now()), verdict{reason: v1.ReasonProgressing, message: message})
	*statusOf(interim).observed = *statusOf(o).observed
	if w.client.Status().Update(ctx, interim) == nil {
		o.SetResourceVersion(interim.GetResourceVersion())
		w.writes.Wrote(o)
	}
}

// publish writes the status, and tells of it what is new. A status that could not be
// written was not one: what it says is decided, and told, once more.
func (w *world) publish(ctx context.Context, before, o object) error {
	if err := w.writeStatus(ctx, before, o); err != nil {
		return err
	}
	w.tell(before, o)
	return nil
}

func (w *world) writeStatus(ctx context.Context, before runtime.Object, o object) error {
	if equality.Semantic.DeepEqual(before, o.(runtime.Object)) {
		return nil
	}
	if err := w.client.Status().Update(ctx, o); err != nil {
		if o.GetDeletionTimestamp() != nil && apierrors.IsNotFound(err) {
			return nil // It is gone, and nobody reads of it any more.
		}
		return fmt.Errorf("write status: %w", err)
	}
	w.writes.Wrote(o)
	return nil
}

// unpause takes back what was said while an object was paused.
func unpause(o object, now metav1.Time) {
	if o.GetCondition(v1.TypeSynced).Reason == v1.ReasonPaused {
		o.SetConditions(now, v1.Synced())
	}
}

func lower(s string) string { return strings.ToLower(s) }

// packages reads the content of packages and revisions.
func (w *world) packages() state.Packages {
	return state.Packages{Content: w.content, Origins: w.origins, Namespace: w.namespace}
}
