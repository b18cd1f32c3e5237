package v1

import corev1 "k8s.io/api/core/v1"

// The types of condition of packages and revisions.
const (
	// TypeInstalled on a package: its revision is the active one.
	TypeInstalled ConditionType = "Installed"
	// TypeHealthy on a package: its revision, and the runtime of it, are healthy.
	TypeHealthy ConditionType = "Healthy"
	// TypeRevisionHealthy on a revision: its objects are in place.
	TypeRevisionHealthy ConditionType = "RevisionHealthy"
	// TypeRuntimeHealthy on a revision with a runtime: its program is available.
	TypeRuntimeHealthy ConditionType = "RuntimeHealthy"
	// TypeRuntimeActive on a revision with a runtime: its program should run.
	TypeRuntimeActive ConditionType = "RuntimeActive"
	// TypeSynced on any object: False while it is paused, or while a package with
	// the policy Always cannot be looked up.
	TypeSynced ConditionType = "Synced"

	// TypeReady on a package or revision: what its spec asks for is in place and
	// healthy.
	TypeReady ConditionType = "Ready"
	// TypeReconciling on a package or revision, only while it is True: work is
	// under way or is tried again.
	TypeReconciling ConditionType = "Reconciling"
	// TypeStalled on a package or revision, only while it is True: nothing more
	// happens until somebody mends what the message names.
	TypeStalled ConditionType = "Stalled"
)

// The reasons of those conditions.
const (
	ReasonUnpacking     ConditionReason = "UnpackingPackage"
	ReasonInactive      ConditionReason = "InactivePackageRevision"
	ReasonActive        ConditionReason = "ActivePackageRevision"
	ReasonHealthy       ConditionReason = "HealthyPackageRevision"
	ReasonUnhealthy     ConditionReason = "UnhealthyPackageRevision"
	ReasonUnknownHealth ConditionReason = "UnknownPackageRevisionHealth"

	// ReasonRolledBack: a revision did not become healthy in time, and the one
	// before it was brought back.
	ReasonRolledBack ConditionReason = "RolledBack"

	// ReasonAwaitingActivation: the runtime waits for the first active managed
	// resource definition, which is a healthy state.
	ReasonAwaitingActivation ConditionReason = "AwaitingActivation"
	ReasonActiveRuntime      ConditionReason = "ActiveRuntime"

	// ReasonProgressing: the objects of a revision are being established.
	ReasonProgressing ConditionReason = "Progressing"
	// ReasonLookupFailed: a registry could not be asked whether a tag has moved.
	// What is installed stays as it is.
	ReasonLookupFailed ConditionReason = "LookupFailed"
	// ReasonSynced: nothing stands in the way of the controller any more.
	ReasonSynced ConditionReason = "ReconcileSuccess"

	// ReasonPaused: the annotation crossplane.io/paused stops the controller.
	ReasonPaused ConditionReason = "ReconcilePaused"
)

// Unpacking says of a package that its content is not there yet, and why.
func Unpacking(message string) Condition {
	return condition(TypeInstalled, corev1.ConditionFalse, ReasonUnpacking, message)
}

// Inactive says of a package that its newest revision is not the active one.
func Inactive(message string) Condition {
	return condition(TypeInstalled, corev1.ConditionFalse, ReasonInactive, message)
}

// Active says of a package that its revision is active.
func Active() Condition {
	return condition(TypeInstalled, corev1.ConditionTrue, ReasonActive, "")
}

// Healthy says of a package that its revision and its runtime are healthy.
func Healthy() Condition {
	return condition(TypeHealthy, corev1.ConditionTrue, ReasonHealthy, "")
}

// HealthyAwaitingActivation says of a package that it is healthy and that its
// runtime starts with the first resource that needs it.
func HealthyAwaitingActivation() Condition {
	return condition(TypeHealthy, corev1.ConditionTrue, ReasonAwaitingActivation, "")
}

// Unhealthy says of a package why it does not work.
func Unhealthy(message string) Condition {
	return condition(TypeHealthy, corev1.ConditionFalse, ReasonUnhealthy, message)
}

// RolledBack says of a package which revision was brought back, and why.
func RolledBack(message string) Condition {
	return condition(TypeHealthy, corev1.ConditionFalse, ReasonRolledBack, message)
}

// UnknownHealth says of a package that its health is not known yet.
func UnknownHealth(message string) Condition {
	return condition(TypeHealthy, corev1.ConditionUnknown, ReasonUnknownHealth, message)
}

// RevisionHealthy says of a revision that its objects are in place.
func RevisionHealthy() Condition {
	return condition(TypeRevisionHealthy, corev1.ConditionTrue, ReasonHealthy, "")
}

// RevisionUnhealthy says of a revision why its objects are not in place.
func RevisionUnhealthy(message string) Condition {
	return condition(TypeRevisionHealthy, corev1.ConditionFalse, ReasonUnhealthy, message)
}

// RevisionUnknownHealth says of a revision that its health is not known yet.
func RevisionUnknownHealth(message string) Condition {
	return condition(TypeRevisionHealthy, corev1.ConditionUnknown, ReasonUnknownHealth, message)
}

// RuntimeHealthy says of a revision that its program is available.
func RuntimeHealthy() Condition {
	return condition(TypeRuntimeHealthy, corev1.ConditionTrue, ReasonHealthy, "")
}

// RuntimeUnhealthy says of a revision why its program is not available.
func RuntimeUnhealthy(message string) Condition {
	return condition(TypeRuntimeHealthy, corev1.ConditionFalse, ReasonUnhealthy, message)
}

// RuntimeUnknownHealth says of a revision that nothing is known of its program.
func RuntimeUnknownHealth(message string) Condition {
	return condition(TypeRuntimeHealthy, corev1.ConditionUnknown, ReasonUnknownHealth, message)
}

// RuntimeActive says of a revision that its program should run.
func RuntimeActive() Condition {
	return condition(TypeRuntimeActive, corev1.ConditionTrue, ReasonActiveRuntime, "")
}

// RuntimeAwaitingActivation says of a revision that its program starts with the
// first resource that needs it.
func RuntimeAwaitingActivation() Condition {
	return condition(TypeRuntimeActive, corev1.ConditionFalse, ReasonAwaitingActivation, "")
}

// Paused says of an object that its controller leaves it alone.
func Paused(message string) Condition {
	return condition(TypeSynced, corev1.ConditionFalse, ReasonPaused, message)
}

// LookupFailed says of a package that it could not be looked up, and why.
func LookupFailed(message string) Condition {
	return condition(TypeSynced, corev1.ConditionFalse, ReasonLookupFailed, message)
}

// Synced says of an object that nothing stands in the way of its controller.
func Synced() Condition {
	return condition(TypeSynced, corev1.ConditionTrue, ReasonSynced, "")
}

// Ready says of an object whether what its spec asks for is in place.
func Ready(s corev1.ConditionStatus, r ConditionReason, message string) Condition {
	return condition(TypeReady, s, r, message)
}

// Reconciling says of an object that work on it is under way.
func Reconciling(r ConditionReason, message string) Condition {
	return condition(TypeReconciling, corev1.ConditionTrue, r, message)
}

// Stalled says of an object that it waits for a person.
func Stalled(r ConditionReason, message string) Condition {
	return condition(TypeStalled, corev1.ConditionTrue, r, message)
}

func condition(t ConditionType, s corev1.ConditionStatus, r ConditionReason, message string) Condition {
	return Condition{Type: t, Status: s, Reason: r, Message: message}
}
