// Package requeue decides when a reconciliation is repeated.
package requeue

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/controller/contention"
	"github.com/xpkg-dev/xpkg/internal/controller/logging"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

const (
	// workers is the maximum number of concurrent reconciliations of a controller. Most
	// reconciliations wait for a registry or the API server. Operations that use much memory or CPU
	// have limits of their own.
	workers = 64
	// FirstRetry is the shortest delay before a failed reconciliation is retried. The delay
	// doubles with each failure.
	FirstRetry = 250 * time.Millisecond
	// LastRetry is the longest delay.
	LastRetry = time.Minute
	// permissionPause is the pause between two checks of whether the manager has received
	// the permissions that a revision waits for.
	permissionPause = 10 * time.Second
)

// Options returns the options of a controller that reconciles many objects concurrently, with log as the
// logger of reconciliations.
func Options(log *slog.Logger) controller.Options {
	base := logr.FromSlogHandler(log.Handler())
	return controller.Options{
		LogConstructor: func(req *reconcile.Request) logr.Logger {
			if req == nil {
				// Starts and stops of controllers are details.
				return base.V(1)
			}
			return base
		},
		MaxConcurrentReconciles: workers,
		SkipNameValidation:      new(true),
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
			FirstRetry, LastRetry,
		),
	}
}

// OneAtATime returns the options of a controller that reconciles one object at a time.
func OneAtATime(log *slog.Logger) controller.Options {
	o := Options(log)
	o.MaxConcurrentReconciles = 1
	return o
}

// ErrStale marks the failure of a reconciliation whose reads were stale.
var ErrStale = errors.New("the cache is behind")

// IsStale reports whether a reconciliation failed because an object was read before its last
// change. The reconciliation is repeated soon, and nothing is reported.
func IsStale(err error) bool {
	return errors.Is(err, ErrStale) || apierrors.IsConflict(err) && !errors.Is(err, apply.ErrMoved)
}

// Soon returns the result of a reconciliation whose reads were stale. It is repeated after
// FirstRetry.
func Soon() ctrl.Result { return ctrl.Result{RequeueAfter: Jitter(FirstRetry)} }

// OnError returns when a failed reconciliation is retried: at the time that the failure names, never, or
// with an increasing delay.
func OnError(ctx context.Context, err error) (ctrl.Result, error) {
	log := logging.FromContext(ctx)
	if at, ok := remote.RetryAt(err); ok {
		log.InfoContext(ctx, "retrying when the registry allows it", "at", at, "error", err.Error())
		return ctrl.Result{RequeueAfter: Jitter(max(FirstRetry, time.Until(at)))}, nil
	}
	if at, ok := contention.RetryAt(err); ok {
		// The Stop was reported already, so the error is not returned to controller-runtime.
		return ctrl.Result{RequeueAfter: Jitter(max(FirstRetry, time.Until(at)))}, nil
	}
	if errors.Is(err, rbac.ErrPermissionMissing) {
		// controller-runtime would log a returned error, but waiting for an administrator is no
		// error. A change of any role also enqueues the revision.
		log.DebugContext(ctx, "waiting for permissions", "reason", err.Error())
		return ctrl.Result{RequeueAfter: Jitter(permissionPause)}, nil
	}
	if !errcode.From(err).Code.Class.Retry {
		log.InfoContext(ctx, "not retrying until the object changes", "error", err.Error())
		return ctrl.Result{}, nil
	}
	log.DebugContext(ctx, "retrying after a delay", "error", err.Error())
	return ctrl.Result{}, err
}

// Level returns the level at which the failure of a reconciliation is logged: Error for a fault of
// the manager, Warn for a failure of the environment or of a package, and Info for a stale read,
// and for a package that waits for another package or for the decision of a user.
func Level(err error) slog.Level {
	code := errcode.From(err).Code
	switch {
	case IsStale(err), code.Approval:
		return slog.LevelInfo
	case code.Class == errcode.Internal:
		return slog.LevelError
	case code.Class == errcode.Conflict, code.Class == errcode.Unhealthy, code.Class == errcode.Interrupted:
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

// IsTransient reports whether a failure to read content is temporary, so that it does not affect
// the installed objects: the content is not in the cache, and the registry does not return it now.
func IsTransient(err error) bool {
	class := errcode.From(err).Code.Class
	return class.Retry && class != errcode.Internal
}

// AfterLookup returns the delay until the next request to a registry: the interval, or longer if
// err names a later time for a retry.
func AfterLookup(err error, interval time.Duration, now time.Time) time.Duration {
	if at, ok := remote.RetryAt(err); ok {
		interval = max(interval, at.Sub(now))
	}
	return Jitter(interval)
}

// Jitter lengthens a delay by up to a tenth, so that reconciliations that started together spread out.
func Jitter(d time.Duration) time.Duration {
	return d + time.Duration(rand.Int64N(int64(d)/10+1))
}

// By returns result with the time of the next reconciliation moved forward to at, but to at least
// one second from now. The zero time changes nothing.
func By(result ctrl.Result, at, now time.Time) ctrl.Result {
	if at.IsZero() {
		return result
	}
	return Within(result, max(time.Second, at.Sub(now)))
}

// Within returns result with the time of the next reconciliation moved forward to after delay, which is not zero.
func Within(result ctrl.Result, delay time.Duration) ctrl.Result {
	if result.RequeueAfter == 0 || delay < result.RequeueAfter {
		result.RequeueAfter = delay
	}
	return result
}
