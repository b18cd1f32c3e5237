package v1

import corev1 "k8s.io/api/core/v1"

// Condition types of packages and revisions.
const (
	// TypeInstalled is True on a package with an active revision.
	TypeInstalled ConditionType = "Installed"
	// TypeHealthy is True on a package whose revision and runtime are healthy.
	TypeHealthy ConditionType = "Healthy"
	// TypeRevisionHealthy is True on a revision whose objects are established.
	TypeRevisionHealthy ConditionType = "RevisionHealthy"
	// TypeRuntimeHealthy is True on a revision whose runtime is available.
	TypeRuntimeHealthy ConditionType = "RuntimeHealthy"
	// TypeRuntimeActive is True on a revision whose runtime should run.
	TypeRuntimeActive ConditionType = "RuntimeActive"
	// TypeSynced is False on an object that is paused, and on a package with the policy Always while
	// its tag cannot be resolved.
	TypeSynced ConditionType = "Synced"

	// TypeInTransaction is True on a package that a transaction changes. It is absent otherwise.
	TypeInTransaction ConditionType = "InTransaction"

	// TypeReady is True on a package or revision whose desired state is established and healthy.
	TypeReady ConditionType = "Ready"
	// TypeReconciling is True on a package or revision while it is in progress or retried. It is
	// absent otherwise.
	TypeReconciling ConditionType = "Reconciling"
	// TypeStalled is True on a package or revision that makes no progress until a user fixes the
	// cause in the message. It is absent otherwise.
	TypeStalled ConditionType = "Stalled"
)

// Condition reasons of packages and revisions.
const (
	ReasonUnpacking     ConditionReason = "UnpackingPackage"
	ReasonInactive      ConditionReason = "InactivePackageRevision"
	ReasonActive        ConditionReason = "ActivePackageRevision"
	ReasonHealthy       ConditionReason = "HealthyPackageRevision"
	ReasonUnhealthy     ConditionReason = "UnhealthyPackageRevision"
	ReasonUnknownHealth ConditionReason = "UnknownPackageRevisionHealth"

	// ReasonNotComposed is the reason of Ready for an installed package whose XRDs are not
	// established because the cluster has no Crossplane core.
	ReasonNotComposed ConditionReason = "NotComposed"

	// ReasonWebhooksNotInstalled is the reason of Ready for an installed package whose webhook configurations wait
	// until its runtime serves them. An event with this reason on the revision names the cause.
	ReasonWebhooksNotInstalled ConditionReason = "WebhooksNotInstalled"

	// ReasonRolledBack means that a revision did not become healthy in time, and that the previous
	// one was activated again.
	ReasonRolledBack ConditionReason = "RolledBack"

	// ReasonAwaitingActivation means that the runtime waits for the first active managed resource
	// definition. The revision is healthy.
	ReasonAwaitingActivation ConditionReason = "AwaitingActivation"
	ReasonActiveRuntime      ConditionReason = "ActiveRuntime"

	// ReasonCustomResourcesExist means that a package is being deleted, and that a user has to answer first what happens
	// to its custom resources.
	ReasonCustomResourcesExist ConditionReason = "CustomResourcesExist"
	// ReasonProgressing means that the objects of a revision are being established.
	ReasonProgressing ConditionReason = "Progressing"
	// ReasonLookupFailed means that a registry could not be queried for the current digest of a tag.
	// The installed content stays unchanged.
	ReasonLookupFailed ConditionReason = "LookupFailed"
	// ReasonSynced means that the object is reconciled normally.
	ReasonSynced ConditionReason = "ReconcileSuccess"

	// ReasonHeld means that another change of the package takes it out of a transaction.
	ReasonHeld ConditionReason = "Held"

	// ReasonPaused means that the annotation crossplane.io/paused pauses reconciliation.
	ReasonPaused ConditionReason = "ReconcilePaused"
)

// Unpacking returns the condition of a package whose content is not available yet.
func Unpacking(message string) Condition {
	return condition(TypeInstalled, corev1.ConditionFalse, ReasonUnpacking, message)
}

// Inactive returns the condition of a package whose newest revision is inactive.
func Inactive(message string) Condition {
	return condition(TypeInstalled, corev1.ConditionFalse, ReasonInactive, message)
}

// Active returns the condition of a package whose revision is active.
func Active() Condition {
	return condition(TypeInstalled, corev1.ConditionTrue, ReasonActive, "")
}

// InTransaction returns the condition of a package that a transaction changes.
func InTransaction(message string) Condition {
	return condition(TypeInTransaction, corev1.ConditionTrue, ReasonHeld, message)
}

// Healthy returns the condition of a package whose revision and runtime are healthy.
func Healthy() Condition {
	return condition(TypeHealthy, corev1.ConditionTrue, ReasonHealthy, "")
}

// HealthyAwaitingActivation returns the condition of a healthy package whose
// runtime starts with the first resource that needs it.
func HealthyAwaitingActivation() Condition {
	return condition(TypeHealthy, corev1.ConditionTrue, ReasonAwaitingActivation, "")
}

// Unhealthy returns the condition of an unhealthy package.
func Unhealthy(message string) Condition {
	return condition(TypeHealthy, corev1.ConditionFalse, ReasonUnhealthy, message)
}

// RolledBack returns the condition of a package that was rolled back.
func RolledBack(message string) Condition {
	return condition(TypeHealthy, corev1.ConditionFalse, ReasonRolledBack, message)
}

// UnknownHealth returns the condition of a package whose health is not known yet.
func UnknownHealth(message string) Condition {
	return condition(TypeHealthy, corev1.ConditionUnknown, ReasonUnknownHealth, message)
}

// RevisionHealthy returns the condition of a revision whose objects are established.
func RevisionHealthy() Condition {
	return condition(TypeRevisionHealthy, corev1.ConditionTrue, ReasonHealthy, "")
}

// RevisionUnhealthy returns the condition of a revision whose objects are not established.
func RevisionUnhealthy(message string) Condition {
	return condition(TypeRevisionHealthy, corev1.ConditionFalse, ReasonUnhealthy, message)
}

// RevisionUnknownHealth returns the condition of a revision whose health is not known yet.
func RevisionUnknownHealth(message string) Condition {
	return condition(TypeRevisionHealthy, corev1.ConditionUnknown, ReasonUnknownHealth, message)
}

// RuntimeHealthy returns the condition of a revision whose runtime is available.
func RuntimeHealthy() Condition {
	return condition(TypeRuntimeHealthy, corev1.ConditionTrue, ReasonHealthy, "")
}

// RuntimeUnhealthy returns the condition of a revision whose runtime is not available.
func RuntimeUnhealthy(message string) Condition {
	return condition(TypeRuntimeHealthy, corev1.ConditionFalse, ReasonUnhealthy, message)
}

// RuntimeUnknownHealth returns the condition of a revision whose runtime has not reported its health.
func RuntimeUnknownHealth(message string) Condition {
	return condition(TypeRuntimeHealthy, corev1.ConditionUnknown, ReasonUnknownHealth, message)
}

// RuntimeActive returns the condition of a revision whose runtime should run.
func RuntimeActive() Condition {
	return condition(TypeRuntimeActive, corev1.ConditionTrue, ReasonActiveRuntime, "")
}

// RuntimeAwaitingActivation returns the condition of a revision whose runtime starts with the
// first resource that needs it.
func RuntimeAwaitingActivation() Condition {
	return condition(TypeRuntimeActive, corev1.ConditionFalse, ReasonAwaitingActivation, "")
}

// Paused returns the condition of an object that is not reconciled.
func Paused(message string) Condition {
	return condition(TypeSynced, corev1.ConditionFalse, ReasonPaused, message)
}

// LookupFailed returns the condition of a package whose tag could not be resolved again.
func LookupFailed(message string) Condition {
	return condition(TypeSynced, corev1.ConditionFalse, ReasonLookupFailed, message)
}

// Synced returns the condition of an object that is reconciled normally.
func Synced() Condition {
	return condition(TypeSynced, corev1.ConditionTrue, ReasonSynced, "")
}

// Ready returns the condition that reports whether the desired state is established.
func Ready(s corev1.ConditionStatus, r ConditionReason, message string) Condition {
	return condition(TypeReady, s, r, message)
}

// Reconciling returns the condition of an object that is being reconciled.
func Reconciling(r ConditionReason, message string) Condition {
	return condition(TypeReconciling, corev1.ConditionTrue, r, message)
}

// Stalled returns the condition of an object that needs an action of a user.
func Stalled(r ConditionReason, message string) Condition {
	return condition(TypeStalled, corev1.ConditionTrue, r, message)
}

func condition(t ConditionType, s corev1.ConditionStatus, r ConditionReason, message string) Condition {
	return Condition{Type: t, Status: s, Reason: r, Message: message}
}
