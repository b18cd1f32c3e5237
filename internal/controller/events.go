package controller

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/deployment"
)

// tell makes an event of what has changed since the last time, and of nothing
// else. That all is well is told once, of the package.
func (w *world) tell(before, after object) {
	for _, t := range []v1.ConditionType{v1.TypeReady, v1.TypeSynced} {
		was, is := before.GetCondition(t), after.GetCondition(t)
		if was.Status == is.Status && was.Reason == is.Reason && was.Message == is.Message {
			continue
		}
		switch {
		case is.Status == corev1.ConditionFalse && is.Message != "":
			w.events.Eventf(after, nil, eventType(after, t), string(is.Reason), "Reconcile", "%s", clip(is.Message))
		case is.Status == corev1.ConditionTrue && t == v1.TypeReady && !ofRevision(after):
			w.events.Eventf(after, nil, corev1.EventTypeNormal, string(is.Reason), "Reconcile", "%s is healthy", after.GetName())
		}
	}
}

func ofRevision(o object) bool {
	_, ok := o.(v1.PackageRevision)
	return ok
}

// eventType is Normal for what is on its way or wanted, and Warning for failures.
func eventType(o object, t v1.ConditionType) string {
	reason := o.GetCondition(t).Reason
	switch reason {
	case v1.ReasonProgressing, v1.ReasonInactive, v1.ReasonPaused:
		return corev1.EventTypeNormal
	}
	switch string(reason) {
	case ErrDependencyMissing.Name, ErrDependencyComing.Name, // What is missing is being installed.
		runtime.ReasonNotReported, runtime.ReasonWaiting, runtime.ReasonStarting,
		deployment.ReasonHeld, deployment.ReasonTerminating, deployment.ReasonReplacing:
		return corev1.EventTypeNormal
	}
	return corev1.EventTypeWarning
}

// clip keeps a note within what the API server accepts for an event.
func clip(s string) string {
	const limit = 1000
	if len(s) > limit {
		return strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return s
}
