package deployment

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/internal/runtime"
)

func TestStateOf(t *testing.T) {
	condition := func(
		t appsv1.DeploymentConditionType, s corev1.ConditionStatus, message string,
	) appsv1.DeploymentCondition {
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
		"NoConditions": {1, 2, nil, false, runtime.ReasonNotReported, "no condition Available"},
		"OldStatus":    {1, 1, []appsv1.DeploymentCondition{available}, false, runtime.ReasonNotReported, "no status"},
		"Available":    {1, 2, []appsv1.DeploymentCondition{available}, true, "", ""},
		"Unavailable":  {1, 2, []appsv1.DeploymentCondition{unavailable}, false, reasonUnavailable, "too few"},
		"NoPodsWanted": {0, 0, nil, true, "", ""},
		"NoPodsAllowed": {1, 2, []appsv1.DeploymentCondition{
			unavailable, condition(appsv1.DeploymentReplicaFailure, corev1.ConditionTrue, "quota"),
		}, false, reasonUnavailable, "quota"},
		"Stuck": {1, 2, []appsv1.DeploymentCondition{
			available, condition(appsv1.DeploymentProgressing, corev1.ConditionFalse, "timed out"),
		}, false, reasonStuck, "timed out"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := stateOf(&appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Name: "d", Generation: 2}, Spec: appsv1.DeploymentSpec{Replicas: &tc.replicas},
				Status: appsv1.DeploymentStatus{
					ObservedGeneration: tc.observed, Conditions: tc.conditions, Replicas: 1, UpdatedReplicas: 1,
				},
			})
			if got.Available != tc.available || got.Reason != tc.reason || !strings.Contains(got.Message, tc.message) {
				t.Errorf("got %+v, want available %t, reason %q, message with %q", got, tc.available, tc.reason, tc.message)
			}
		})
	}
}

// A Deployment that rolls out a change is available through its old pods.
func TestRollingOut(t *testing.T) {
	for name, tc := range map[string]struct {
		replicas, all, updated int32
		want                   bool
	}{
		"NoNewPod":       {1, 1, 0, true},
		"OldPodIsLeft":   {1, 2, 1, true},
		"SomeNewPods":    {3, 3, 2, true},
		"OnlyNewPods":    {3, 3, 3, false},
		"NoPodsAreAsked": {0, 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := &appsv1.Deployment{
				Spec:   appsv1.DeploymentSpec{Replicas: &tc.replicas},
				Status: appsv1.DeploymentStatus{Replicas: tc.all, UpdatedReplicas: tc.updated},
			}
			if got := rollingOut(d); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

// The reason of a pod separates failures of the runtime, which another version may not
// have, from failures of the node and of the cluster.
func TestReasonsOfPods(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	exit := &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}
	waits := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	ran := func(d time.Duration) corev1.ContainerState {
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now.Add(-d))}}
	}
	container := func(
		state corev1.ContainerState, restarts int32, last *corev1.ContainerStateTerminated, ready bool,
	) corev1.PodStatus {
		return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			State: state, RestartCount: restarts, LastTerminationState: corev1.ContainerState{Terminated: last}, Ready: ready,
		}}}
	}
	evicted := container(corev1.ContainerState{Terminated: exit}, 5, exit, false)
	evicted.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}
	for name, tc := range map[string]struct {
		status  corev1.PodStatus
		reason  string
		program bool
	}{
		"Exited": {
			container(corev1.ContainerState{Terminated: exit}, 0, nil, false), runtime.ReasonCrashed, true,
		},
		"RestartedOnce":       {container(waits, 1, exit, false), runtime.ReasonCrashed, true},
		"RestartedThreeTimes": {container(waits, 3, exit, false), runtime.ReasonCrashLoop, true},
		"RestartedJustNow":    {container(ran(time.Second), 3, exit, true), runtime.ReasonCrashLoop, true},
		"RestartedLongAgo":    {container(ran(time.Hour), 3, exit, true), "", false},
		"NodeRestarted": {
			container(ran(time.Second), 3, &corev1.ContainerStateTerminated{ExitCode: 255, Reason: "Unknown"}, true), "", false,
		},
		"NotReady":       {container(ran(time.Hour), 0, nil, false), runtime.ReasonNotServing, true},
		"NodeVanished":   {container(ran(time.Hour), 0, nil, true), "", false},
		"Evicted":        {evicted, "", false},
		"EndedByItsNode": {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "NodeShutdown"}, reasonPodFailed, false},
		"ImageCannotBePulled": {
			container(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}, 0, nil, false),
			ReasonImage, false,
		},
		"DoesNotFitOnAnyNode": {
			corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse}}},
			reasonUnschedulable, false,
		},
		"ReadyAndNeverCrashed": {container(ran(time.Second), 0, nil, true), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			reason, _ := trouble(&corev1.Pod{Status: tc.status}, now)
			if reason != tc.reason || runtime.IsRuntimeFailure(reason) != tc.program {
				t.Errorf(
					"got %q (failure of the program: %t), want %q (%t)", reason, runtime.IsRuntimeFailure(reason), tc.reason,
					tc.program,
				)
			}
		})
	}
}
