package compositeroles

import (
	"context"
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/controller/logging"
	"github.com/xpkg-dev/xpkg/internal/controller/requeue"
	"github.com/xpkg-dev/xpkg/internal/controller/status"
	"github.com/xpkg-dev/xpkg/internal/controller/watch"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// blocked returns when an XRD is reconciled again that must not be reconciled now.
func (r *Reconciler) blocked(ctx context.Context, err error) (ctrl.Result, error) {
	if ctx.Err() != nil {
		return ctrl.Result{}, ctx.Err()
	}
	logging.FromContext(ctx).DebugContext(ctx, "writing no roles of XRDs", "reason", err.Error())
	return ctrl.Result{RequeueAfter: requeue.Jitter(status.BlockedPause)}, nil
}

// report records a failure that only a user can end as an event of the XRD, and returns when it is reconciled again.
func (r *Reconciler) report(ctx context.Context, name string, uid types.UID, err error) (ctrl.Result, error) {
	switch {
	case err == nil:
		r.setFailed(name, "")
		return ctrl.Result{}, nil
	case ctx.Err() != nil:
		return ctrl.Result{}, ctx.Err()
	case requeue.IsStale(err), errors.Is(err, apply.ErrMoved):
		return requeue.Soon(), nil
	}
	err = apply.ClassifyForbidden(err)
	code := errcode.From(err).Code
	r.CountFailure(code.Name)
	waits := errors.Is(err, rbac.ErrPermissionMissing)
	if message := errcode.Message(err); (waits || !code.Class.Retry) && r.setFailed(name, message) {
		logging.FromContext(ctx).WarnContext(ctx, "the roles of an XRD are missing", "xrd", name, "error", err.Error())
		o := watch.Metadata(definition)
		o.SetName(name)
		o.SetUID(uid)
		r.Events.Eventf(o, nil, corev1.EventTypeWarning, code.Name, "Grant", "%s", status.Clip(message))
	}
	if waits {
		// A change of a role enqueues the XRD too, and permissions can also come from another authorizer.
		return ctrl.Result{RequeueAfter: requeue.Jitter(requeue.LastRetry)}, nil
	}
	return requeue.OnError(ctx, err)
}

// setFailed records the message of the last event of an XRD, and reports whether it is another one.
func (r *Reconciler) setFailed(name, message string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed[name] == message {
		return false
	}
	if r.failed == nil {
		r.failed = map[string]string{}
	}
	if r.failed[name] = message; message == "" {
		delete(r.failed, name)
	}
	return true
}

// waiting returns the names of the XRDs that wait for an administrator.
func (r *Reconciler) waiting() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.failed))
}
