package rollout

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Deployment is rolled out when `kubectl rollout status` says so: a former pod that still serves does not count as a
// new one that cannot start.
func TestMissing(t *testing.T) {
	available := appsv1.DeploymentCondition{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}
	exceeded := appsv1.DeploymentCondition{
		Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: progressDeadlineExceeded,
		Message: "has timed out progressing",
	}
	for name, tc := range map[string]struct {
		status appsv1.DeploymentStatus
		want   string
		fails  bool
	}{
		"RolledOut": {
			appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}, "", false,
		},
		"NotObserved": {
			appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1},
			"not observed", false,
		},
		"NoNewPod": {
			appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 1, AvailableReplicas: 1}, "0 of 1 new pods", false,
		},
		"OldPodServes": {
			appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 1, AvailableReplicas: 1},
			"1 former pod not deleted", false,
		},
		"NewPodNotReady": {
			appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: 1}, "0 of 1 new pods are available",
			false,
		},
		"Exceeded": {appsv1.DeploymentStatus{
			ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 1, AvailableReplicas: 1,
			Conditions: []appsv1.DeploymentCondition{exceeded},
		}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			tc.status.Conditions = append(tc.status.Conditions, available)
			d := &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(1))},
				Status: tc.status,
			}
			got, err := Missing(d)
			if (err != nil) != tc.fails || !strings.Contains(got, tc.want) || tc.want == "" && got != "" {
				t.Errorf("missing %q (%v), want %q", got, err, tc.want)
			}
		})
	}
}
