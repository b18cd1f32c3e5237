package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// Condition types of these kinds.
const (
	// TypeEstablished is True on an MRD whose CustomResourceDefinition is served.
	TypeEstablished v1.ConditionType = "Established"
	// TypeHealthy is True on a policy whose MRDs are active.
	TypeHealthy v1.ConditionType = "Healthy"
)

// Condition reasons of these kinds.
const (
	ReasonInactive    v1.ConditionReason = "InactiveManagedResource"
	ReasonPending     v1.ConditionReason = "PendingManagedResource"
	ReasonEstablished v1.ConditionReason = "EstablishedManagedResource"
	ReasonTerminating v1.ConditionReason = "TerminatingManagedResource"

	ReasonRunning           v1.ConditionReason = "Running"
	ReasonEncounteredErrors v1.ConditionReason = "EncounteredErrors"
	ReasonBlockedPolicy     v1.ConditionReason = "BlockedManagedResourceActivationPolicy"
	ReasonTerminatingPolicy v1.ConditionReason = "TerminatingManagedResourceActivationPolicy"
)

// InactiveManagedResource returns the condition of an MRD that is not activated.
func InactiveManagedResource() v1.Condition {
	return condition(TypeEstablished, corev1.ConditionFalse, ReasonInactive, "")
}

// PendingManagedResource returns the condition of an MRD that waits for the given reason.
func PendingManagedResource(message string) v1.Condition {
	return condition(TypeEstablished, corev1.ConditionFalse, ReasonPending, message)
}

// EstablishedManagedResource returns the condition of an MRD whose CRD is served.
func EstablishedManagedResource() v1.Condition {
	return condition(TypeEstablished, corev1.ConditionTrue, ReasonEstablished, "")
}

// TerminatingManagedResource returns the condition of an MRD that is being deleted.
func TerminatingManagedResource() v1.Condition {
	return condition(TypeEstablished, corev1.ConditionFalse, ReasonTerminating, "")
}

// RunningPolicy returns the condition of a policy that has activated its MRDs.
func RunningPolicy() v1.Condition {
	return condition(TypeHealthy, corev1.ConditionTrue, ReasonRunning, "")
}

// FailedPolicy returns the condition of a policy that could not activate an MRD.
func FailedPolicy(message string) v1.Condition {
	return condition(TypeHealthy, corev1.ConditionFalse, ReasonEncounteredErrors, message)
}

// BlockedPolicy returns the condition of a policy that is blocked.
func BlockedPolicy(message string) v1.Condition {
	return condition(TypeHealthy, corev1.ConditionFalse, ReasonBlockedPolicy, message)
}

// TerminatingPolicy returns the condition of a policy that is being deleted.
func TerminatingPolicy() v1.Condition {
	return condition(TypeHealthy, corev1.ConditionFalse, ReasonTerminatingPolicy, "")
}

func condition(t v1.ConditionType, s corev1.ConditionStatus, r v1.ConditionReason, message string) v1.Condition {
	return v1.Condition{Type: t, Status: s, Reason: r, Message: message}
}
