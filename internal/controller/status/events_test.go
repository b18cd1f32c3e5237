package status

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// An alert on warnings does not fire for an install without failures.
func TestOnlyFailuresAreWarnings(t *testing.T) {
	for reason, want := range map[v1.ConditionReason]string{
		"Progressing": corev1.EventTypeNormal, "Starting": corev1.EventTypeNormal, "NotReported": corev1.EventTypeNormal,
		"WaitingForPredecessor": corev1.EventTypeNormal, "DependencyMissing": corev1.EventTypeNormal,
		"DependencyComing": corev1.EventTypeNormal,
		"CrashLoop":        corev1.EventTypeWarning, "ForeignOwner": corev1.EventTypeWarning,
		"Unsolvable": corev1.EventTypeWarning, "TagNotFound": corev1.EventTypeWarning,
	} {
		if got := eventType(reason); got != want {
			t.Errorf("an event of %s is %s, want %s", reason, got, want)
		}
	}
}
