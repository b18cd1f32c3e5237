package status

import (
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/deployment"
	"github.com/xpkg-dev/xpkg/internal/wording"
)

// recordEvents records an event for each change that leaves the condition Ready or Synced False
// with a message. It also records when a package, but not a revision, becomes ready.
func (r *Reporter) recordEvents(before, after Object) {
	for _, t := range []v1.ConditionType{v1.TypeReady, v1.TypeSynced} {
		old, now := before.GetCondition(t), after.GetCondition(t)
		if old.Status == now.Status && old.Reason == now.Reason && old.Message == now.Message {
			continue
		}
		_, ofRevision := after.(v1.PackageRevision)
		switch {
		case now.Status == corev1.ConditionFalse && now.Message != "":
			r.Events.Eventf(after, nil, eventType(now.Reason), string(now.Reason), "Reconcile", "%s", Clip(now.Message))
		case now.Status == corev1.ConditionTrue && old.Status != corev1.ConditionTrue && t == v1.TypeReady && !ofRevision:
			r.Events.Eventf(
				after, nil, corev1.EventTypeNormal, string(now.Reason), "Reconcile", "%s is healthy", after.GetName(),
			)
		}
	}
}

// eventType returns Warning for failures, and Normal for progress and for states that the user
// requested.
func eventType(reason v1.ConditionReason) string {
	switch reason {
	case v1.ReasonProgressing, v1.ReasonInactive, v1.ReasonPaused:
		return corev1.EventTypeNormal
	}
	switch string(reason) {
	case graph.ErrDependencyMissing.Name, graph.ErrDependencyComing.Name,
		runtime.ReasonNotReported, runtime.ReasonWaiting, runtime.ReasonStarting,
		deployment.ReasonNameInUse, deployment.ReasonTerminating, deployment.ReasonReplacing:
		return corev1.EventTypeNormal
	}
	return corev1.EventTypeWarning
}

// Clip shortens a note to the length that the API server accepts for an event.
func Clip(s string) string { return wording.Clip(s, 1000) }
