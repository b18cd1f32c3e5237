package manager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
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
	"github.com/xpkg-dev/xpkg/internal/closure"
	"github.com/xpkg-dev/xpkg/internal/content"
	"github.com/xpkg-dev/xpkg/internal/failure"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/oci"
	"github.com/xpkg-dev/xpkg/internal/permission"
)

// Content is where the controllers get the content of packages.
type Content interface {
	// Resolve gives the content that an image stands for now. An answer that
	// somebody got within maxAge is given again.
	Resolve(ctx context.Context, o content.Origin, maxAge time.Duration) (oci.Digest, error)
	// Read gives the package with a digest. What is not in the cache is pulled, if
	// pull says that it may be.
	Read(ctx context.Context, o content.Origin, d oci.Digest, pull bool) (*format.Package, error)
	// Named gives the digest of what was put into the package cache by hand.
	Named(ctx context.Context, name string) (oci.Digest, error)
}

// Origins tell where packages are; an origin.Finder does.
type Origins interface {
	closure.Origins
	// Places tells where repositories are really read, as of now.
	Places(ctx context.Context) (func(repository string) string, error)
}

// world is what the controllers share.
type world struct {
	client client.Client
	// live reads from the API server itself, and not from what was watched of it.
	live    client.Reader
	cluster *apply.Cluster
	content Content
	origins Origins
	events  events.EventRecorder
	log     *slog.Logger
	metrics *metrics
	claims  *claims
	// programs are who runs the programs of packages.
	programs *programs
	// processes carry what is told of processes to the controllers, by kind.
	processes map[string]chan event.GenericEvent
	// certificates are those of the programs.
	certificates *certificates.Store
	core         *crossplane
	// writes are those of its own that were not seen yet.
	writes ownWrites
	// lists are of what the API server itself has.
	lists lists
	now   func() time.Time
	poll  time.Duration
	gate  gate
	needs *needs
	// settling says how what is missing is installed; nil when it is not.
	settling *settling
	// namespace is where the programs of packages run.
	namespace string
	// permissions say how rights are given; nil when somebody else gives them.
	permissions *Permissions
	held        *permission.Held
	// inUse tells the package cache what the packages of this cluster need.
	inUse func(contents []oci.Digest) error
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
	if w.writes.behind(o) {
		return ctrl.Result{RequeueAfter: behindPause}, nil
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
	if stale(err) {
		return ctrl.Result{RequeueAfter: spread(firstRetry)}, nil
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
	if stale(werr) {
		return ctrl.Result{RequeueAfter: spread(firstRetry)}, nil
	}
	if werr != nil {
		return ctrl.Result{}, werr
	}
	if err == nil {
		return result, nil
	}
	w.metrics.failures.WithLabelValues(failure.From(err).Code.Name).Inc()
	return again(ctx, log, err)
}

// stale reports whether an object was read before its last change, as a cache gives
// it. That is no failure: nothing is told of it, and it lengthens no pause.
func stale(err error) bool {
	return errors.Is(err, errStale) || apierrors.IsConflict(err) && !apply.ErrMoved.Is(err)
}

// errStale marks other failures that come of reading too early.
var errStale = errors.New("the cache is behind")

// again says when a failure is tried again: when its cause says so, never, or
// after a pause that grows.
func again(ctx context.Context, log *slog.Logger, err error) (ctrl.Result, error) {
	if at, ok := oci.RetryAt(err); ok {
		log.InfoContext(ctx, "told to wait", "until", at, "error", err.Error())
		return ctrl.Result{RequeueAfter: spread(max(firstRetry, time.Until(at)))}, nil
	}
	if !failure.From(err).Code.Class.Retry {
		log.InfoContext(ctx, "stopped until the object changes", "error", err.Error())
		return ctrl.Result{}, nil
	}
	log.DebugContext(ctx, "tried again after a pause", "error", err.Error())
	return ctrl.Result{}, err
}

// spread makes a pause up to a tenth longer, so that what began together does not
// stay together.
func spread(d time.Duration) time.Duration {
	return d + time.Duration(rand.Int64N(int64(d)/10+1))
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
		w.writes.wrote(o)
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
	w.writes.wrote(o)
	return nil
}

// unpause takes back what was said while an object was paused.
func unpause(o object, now metav1.Time) {
	if o.GetCondition(v1.TypeSynced).Reason == v1.ReasonPaused {
		o.SetConditions(now, v1.Synced())
	}
}

func lower(s string) string { return strings.ToLower(s) }
