package inventory

import (
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// HealthMessage says why a package is not known to be healthy as it is now.
func HealthMessage(p v1.Package) string {
	health := p.GetCondition(v1.TypeHealthy)
	switch {
	case Paused(p):
		return p.GetCondition(v1.TypeSynced).Message
	case health.Message == "" || health.ObservedGeneration != p.GetGeneration():
		return "the manager has not reconciled it yet; check that it runs"
	}
	return health.Message
}

// Paused reports whether the reconciliation of a package is paused.
func Paused(p v1.Package) bool {
	synced := p.GetCondition(v1.TypeSynced)
	return synced.Reason == v1.ReasonPaused && synced.Status == corev1.ConditionFalse
}

// PendingActivation says which revision waits for a person to activate it, or nothing.
func PendingActivation(p v1.Package) string {
	if c := p.GetCondition(v1.TypeInstalled); c.Reason == v1.ReasonInactive && c.Status == corev1.ConditionFalse {
		return c.Message
	}
	return ""
}

// Status returns the status of a condition, or Unknown if it is not set.
func Status(p v1.Package, t v1.ConditionType) string {
	if c := p.GetCondition(t); c.Status != "" {
		return string(c.Status)
	}
	return string(corev1.ConditionUnknown)
}
