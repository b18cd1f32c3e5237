package inventory

import (
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/revision"
)

// HealthNote returns the message of a healthy package, such as that the XRDs of a Configuration
// are not established, or "".
func HealthNote(p v1.Package) string {
	if p.GetCondition(v1.TypeHealthy).Status != corev1.ConditionTrue {
		return ""
	}
	return p.GetCondition(v1.TypeReady).Message
}

// InstalledStatus returns the status of the condition Installed, Deleting for a package that is being deleted, Paused
// for a package that is not reconciled, or RolledBack for a package whose update failed.
func InstalledStatus(p v1.Package) string {
	switch {
	case IsDeleting(p):
		return "Deleting"
	case v1.IsPaused(p):
		return "Paused"
	case revision.PolicyOf(p).Back != "":
		return "RolledBack"
	}
	return Status(p, v1.TypeInstalled)
}

// HealthMessage returns the reason why a package is not known to be healthy.
func HealthMessage(p v1.Package) string {
	health := p.GetCondition(v1.TypeHealthy)
	switch {
	case Paused(p):
		return p.GetCondition(v1.TypeSynced).Message
	case health.Message == "" || health.ObservedGeneration != p.GetGeneration() ||
		!v1.IsRetryHandled(p, p.PackageStatus().LastHandledRetry):
		return "the manager has not reconciled it yet: it still reads the package, or it does not run, which `xpkg doctor` checks"
	}
	return health.Message
}

// Paused reports whether the reconciliation of a package is paused.
func Paused(p v1.Package) bool {
	synced := p.GetCondition(v1.TypeSynced)
	return synced.Reason == v1.ReasonPaused && synced.Status == corev1.ConditionFalse
}

// PendingActivation returns the message about a revision that needs manual activation, or "".
func PendingActivation(p v1.Package) string {
	if c := p.GetCondition(v1.TypeInstalled); c.Reason == v1.ReasonInactive && c.Status == corev1.ConditionFalse {
		return c.Message
	}
	return ""
}

// Status returns the status of a condition, or Unknown if it is not set.
func Status(p v1.Conditioned, t v1.ConditionType) string {
	if c := p.GetCondition(t); c.Status != "" {
		return string(c.Status)
	}
	return string(corev1.ConditionUnknown)
}
