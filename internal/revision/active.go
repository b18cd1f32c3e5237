package revision

import (
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// IsActive reports whether the spec of a revision requests that it is active.
func IsActive(rev v1.PackageRevision) bool {
	return rev.RevisionSpec().DesiredState == v1.RevisionActive
}

// isObserved reports whether the status of a revision describes its current spec and, if the revision is not ready, the
// last attempt that a user has requested.
func isObserved(rev v1.PackageRevision) bool {
	status := rev.RevisionStatus()
	isReady := rev.GetCondition(v1.TypeReady).Status == corev1.ConditionTrue
	return status.ObservedGeneration == rev.GetGeneration() && (isReady || v1.IsRetryHandled(rev, status.LastHandledRetry))
}

// IsEstablished reports whether a revision is active and has established its objects as its current
// spec requires.
func IsEstablished(rev v1.PackageRevision) bool {
	healthy := rev.GetCondition(v1.TypeRevisionHealthy)
	return IsActive(rev) && healthy.Status == corev1.ConditionTrue && healthy.ObservedGeneration == rev.GetGeneration()
}

// IsTerminating reports whether a package is being deleted and has the finalizer of the manager,
// which keeps its runtime running until its CRDs are deleted.
func IsTerminating(p v1.Package) bool {
	if p.GetDeletionTimestamp() == nil {
		return false
	}
	for _, finalizer := range p.GetFinalizers() {
		if finalizer == v1.FinalizerRuntimeProtection {
			return true
		}
	}
	return false
}
