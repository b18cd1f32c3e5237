package leader

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// IsRenewed reports whether a Lease has a holder that renews it. Clocks may differ by the duration of the Lease.
func IsRenewed(l coordinationv1.Lease, now time.Time) bool {
	if l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "" || l.Spec.RenewTime == nil ||
		l.Spec.LeaseDurationSeconds == nil {
		return false
	}
	duration := time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second
	return now.Sub(l.Spec.RenewTime.Time) < 2*duration
}
