package revision

import (
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// Summary is the state of a package or a revision as kstatus defines it: ready, in progress, or
// stalled until a user intervenes.
type Summary struct {
	Ready   bool
	Stalled bool
	// Waiting is set while the object waits for a decision of a user, which is neither progress nor
	// a failure.
	Waiting bool
	Reason  v1.ConditionReason
	Message string
}

// Ready is the summary of an object that matches its spec.
var Ready = Summary{Ready: true, Reason: v1.ReasonHealthy}

// Progressing returns the summary of an object that is in progress.
func Progressing(message string) Summary {
	return Summary{Reason: v1.ReasonProgressing, Message: message}
}

// Summarize returns the summary of a revision from its conditions.
func Summarize(rev v1.PackageRevision) Summary {
	ready, runtime := rev.GetCondition(v1.TypeReady), rev.GetCondition(v1.TypeRuntimeHealthy)
	switch {
	case !isObserved(rev):
		return Progressing("")
	case ready.Status == corev1.ConditionFalse:
		stalled := rev.GetCondition(v1.TypeStalled).Status == corev1.ConditionTrue
		reconciling := rev.GetCondition(v1.TypeReconciling).Status == corev1.ConditionTrue
		return Summary{Stalled: stalled, Waiting: !stalled && !reconciling, Reason: ready.Reason, Message: ready.Message}
	case runtime.Status == corev1.ConditionFalse:
		return Summary{Reason: v1.ReasonUnhealthy, Message: runtime.Message}
	case ready.Status == corev1.ConditionTrue:
		return Summary{Ready: true, Reason: ready.Reason, Message: ready.Message}
	}
	return Progressing("")
}

// HealthOf returns the health of a revision: the health of its runtime, if it has one and its objects are healthy. An
// inactive revision that was not healthy when it was active is not healthy.
func HealthOf(rev v1.PackageRevision) corev1.ConditionStatus {
	if HasFailed(rev) {
		return corev1.ConditionFalse
	}
	objects, runtime := rev.GetCondition(v1.TypeRevisionHealthy), rev.GetCondition(v1.TypeRuntimeHealthy)
	if objects.Status == corev1.ConditionTrue && runtime.Reason != "" {
		return runtime.Status
	}
	return objects.Status
}

// Health returns the Healthy condition of a package whose active revision is rev, from the health of its objects and of
// its runtime.
func Health(rev v1.PackageRevision) v1.Condition {
	objects, runtime := rev.GetCondition(v1.TypeRevisionHealthy), rev.GetCondition(v1.TypeRuntimeHealthy)
	switch {
	case !isObserved(rev):
		return v1.UnknownHealth("The revision " + rev.GetName() + " is being established.")
	case objects.Status == corev1.ConditionFalse:
		return v1.Unhealthy(objects.Message)
	case runtime.Status == corev1.ConditionFalse:
		return v1.Unhealthy(runtime.Message)
	case objects.Status != corev1.ConditionTrue:
		return v1.UnknownHealth("Package revision health is not known yet.")
	case runtime.Message != "" && runtime.Status != corev1.ConditionTrue:
		return v1.UnknownHealth(runtime.Message)
	case rev.GetCondition(v1.TypeRuntimeActive).Reason == v1.ReasonAwaitingActivation:
		return v1.HealthyAwaitingActivation()
	}
	return v1.Healthy()
}
