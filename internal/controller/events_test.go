package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// Whoever is alarmed by warnings is not alarmed by an install that goes as it should.
func TestWarningsAreOfFailures(t *testing.T) {
	for reason, want := range map[v1.ConditionReason]string{
		"Progressing": corev1.EventTypeNormal, "Starting": corev1.EventTypeNormal, "NotReported": corev1.EventTypeNormal,
		"WaitingForPredecessor": corev1.EventTypeNormal, "DependencyMissing": corev1.EventTypeNormal, "DependencyComing": corev1.EventTypeNormal,
		"CrashLoop": corev1.EventTypeWarning, "ForeignOwner": corev1.EventTypeWarning, "Unsolvable": corev1.EventTypeWarning, "TagNotFound": corev1.EventTypeWarning,
	} {
		p := &v1.Provider{}
		p.SetConditions(metav1.Now(), v1.Condition{Type: v1.TypeReady, Status: corev1.ConditionFalse, Reason: reason})
		if got := eventType(p, v1.TypeReady); got != want {
			t.Errorf("an event of %s is %s, want %s", reason, got, want)
		}
	}
}
