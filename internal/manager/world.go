package manager

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/content"
	"github.com/xpkg-dev/xpkg/internal/failure"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/oci"
)

// Content is where the controllers get the content of packages.
type Content interface {
	// Resolve asks which content an origin stands for now. An answer that is not
	// older than maxAge is as good.
	Resolve(ctx context.Context, o content.Origin, maxAge time.Duration) (oci.Digest, error)
	// Read gives the package with a digest. What is not in the cache is pulled, if
	// pull says that it may be.
	Read(ctx context.Context, o content.Origin, d oci.Digest, pull bool) (*format.Package, error)
}

// world is what the controllers share.
type world struct {
	client  client.Client
	cluster *apply.Cluster
	content Content
	events  events.EventRecorder
	log     *slog.Logger
	now     func() time.Time
	poll    time.Duration
	// namespace is where the programs of packages run.
	namespace string
}

// object is what a package and a revision have in common for reporting.
type object interface {
	metav1.Object
	runtime.Object
	v1.Conditioned
}

// report runs one reconciliation and writes the status when it differs. A
// failure becomes conditions; whether it is tried again follows from its class.
func (w *world) report(ctx context.Context, o object, image string, reconcile func() (ctrl.Result, error), failed func(error) []v1.Condition) (ctrl.Result, error) {
	before := o.DeepCopyObject()
	now := metav1.NewTime(w.now())
	if o.GetAnnotations()[v1.AnnotationPaused] == "true" {
		o.SetConditions(now, v1.Paused(fmt.Sprintf("Reconciliation is paused by the annotation %s.", v1.AnnotationPaused)))
		return ctrl.Result{}, w.writeStatus(ctx, before, o)
	}
	unpause(o, now)
	result, err := reconcile()
	if err != nil {
		if ctx.Err() != nil {
			return ctrl.Result{}, ctx.Err()
		}
		o.SetConditions(metav1.NewTime(w.now()), failed(err)...)
	}
	w.tell(before.(object), o, err)
	if werr := w.writeStatus(ctx, before, o); werr != nil {
		return ctrl.Result{}, werr
	}
	if err != nil && !failure.From(err).Code.Class.Retry {
		w.log.InfoContext(ctx, "stopped until the object changes", "name", o.GetName(), "package", image, "error", err.Error())
		return ctrl.Result{}, nil
	}
	return result, err
}

// tell makes an event of a failure, or of a recovery, that was not there before.
func (w *world) tell(before, after object, err error) {
	was, is := health(before), health(after)
	if was.Status == is.Status && was.Message == is.Message {
		return
	}
	switch {
	case err != nil:
		w.events.Eventf(after, nil, corev1.EventTypeWarning, failure.From(err).Code.Name, "Reconcile", "%s", clip(failure.Message(err)))
	case is.Status == corev1.ConditionTrue:
		w.events.Eventf(after, nil, corev1.EventTypeNormal, string(is.Reason), "Reconcile", "%s is healthy", after.GetName())
	}
}

// health is the condition that sums an object up.
func health(o object) v1.Condition {
	if _, ok := o.(v1.PackageRevision); ok {
		return o.GetCondition(v1.TypeRevisionHealthy)
	}
	return o.GetCondition(v1.TypeHealthy)
}

// clip keeps a note within what the API server accepts for an event.
func clip(s string) string {
	const limit = 1000
	if len(s) > limit {
		return strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return s
}

func (w *world) writeStatus(ctx context.Context, before runtime.Object, o object) error {
	if equality.Semantic.DeepEqual(before, o.(runtime.Object)) {
		return nil
	}
	if err := w.client.Status().Update(ctx, o); err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	return nil
}

// unpause takes back what was said while an object was paused.
func unpause(o object, now metav1.Time) {
	if o.GetCondition(v1.TypeSynced).Reason == v1.ReasonPaused {
		o.SetConditions(now, v1.Condition{Type: v1.TypeSynced, Status: corev1.ConditionTrue, Reason: "ReconcileResumed"})
	}
}

func lower(s string) string { return strings.ToLower(s) }
