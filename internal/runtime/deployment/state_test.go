package deployment

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestStateOf(t *testing.T) {
	condition := func(t appsv1.DeploymentConditionType, s corev1.ConditionStatus, message string) appsv1.DeploymentCondition {
		return appsv1.DeploymentCondition{Type: t, Status: s, Message: message}
	}
	available := condition(appsv1.DeploymentAvailable, corev1.ConditionTrue, "")
	unavailable := condition(appsv1.DeploymentAvailable, corev1.ConditionFalse, "too few")
	cases := map[string]struct {
		replicas   int32
		observed   int64
		conditions []appsv1.DeploymentCondition
		available  bool
		reason     string
		message    string
	}{
		"NoConditions":  {1, 2, nil, false, ReasonNotReported, "no condition Available"},
		"OldStatus":     {1, 1, []appsv1.DeploymentCondition{available}, false, ReasonNotReported, "no status"},
		"Available":     {1, 2, []appsv1.DeploymentCondition{available}, true, "", ""},
		"Unavailable":   {1, 2, []appsv1.DeploymentCondition{unavailable}, false, ReasonUnavailable, "too few"},
		"NoPodsWanted":  {0, 0, nil, true, "", ""},
		"NoPodsAllowed": {1, 2, []appsv1.DeploymentCondition{unavailable, condition(appsv1.DeploymentReplicaFailure, corev1.ConditionTrue, "quota")}, false, ReasonUnavailable, "quota"},
		"Stuck":         {1, 2, []appsv1.DeploymentCondition{available, condition(appsv1.DeploymentProgressing, corev1.ConditionFalse, "timed out")}, false, ReasonStuck, "timed out"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := stateOf(&appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Name: "d", Generation: 2}, Spec: appsv1.DeploymentSpec{Replicas: &tc.replicas},
				Status: appsv1.DeploymentStatus{ObservedGeneration: tc.observed, Conditions: tc.conditions},
			})
			if got.Available != tc.available || got.Reason != tc.reason || !strings.Contains(got.Message, tc.message) {
				t.Errorf("got %+v, want available %t, reason %q, message with %q", got, tc.available, tc.reason, tc.message)
			}
		})
	}
}
