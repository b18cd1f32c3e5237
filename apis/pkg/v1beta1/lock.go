package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// LockName is the name of the only Lock.
const LockName = "lock"

// FinalizerLock is the finalizer of a Lock that Crossplane core manages. The manager removes it, because
// the Lock is derived and can be deleted at any time.
const FinalizerLock = "lock.pkg.crossplane.io"

// TypeResolved is True on the Lock if every dependency is installed at a version that satisfies every
// constraint.
const TypeResolved v1.ConditionType = "Resolved"

// Reasons of the condition Resolved.
const (
	ReasonResolutionSucceeded v1.ConditionReason = "DependencyResolutionSucceeded"
	ReasonResolutionFailed    v1.ConditionReason = "DependencyResolutionFailed"
	ReasonResolutionPending   v1.ConditionReason = "DependencyResolutionPending"
)

var _ v1.Conditioned = (*Lock)(nil)

// GetCondition returns the condition of the type, or one with the status Unknown.
func (l *Lock) GetCondition(t v1.ConditionType) v1.Condition { return l.Status.GetCondition(t) }

// SetConditions sets conditions for the current generation of the object.
func (l *Lock) SetConditions(now metav1.Time, conditions ...v1.Condition) {
	l.Status.SetConditions(l.Generation, now, conditions...)
}

// ResolutionSucceeded returns the condition of a Lock whose dependencies are all satisfied.
func ResolutionSucceeded() v1.Condition {
	return v1.Condition{Type: TypeResolved, Status: corev1.ConditionTrue, Reason: ReasonResolutionSucceeded}
}

// ResolutionFailed returns the condition of a Lock with dependencies that cannot be satisfied.
func ResolutionFailed(message string) v1.Condition {
	return v1.Condition{
		Type: TypeResolved, Status: corev1.ConditionFalse,
		Reason: ReasonResolutionFailed, Message: message,
	}
}

// ResolutionPending returns the condition of a Lock with dependencies that are being installed or updated.
func ResolutionPending(message string) v1.Condition {
	return v1.Condition{
		Type: TypeResolved, Status: corev1.ConditionUnknown,
		Reason: ReasonResolutionPending, Message: message,
	}
}
