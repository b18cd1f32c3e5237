package operation

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/xpkg-dev/xpkg/apis"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// A command that requests a package as it is makes the manager try a failed package again, and leaves every other one
// as it is.
func TestTheSameRequestTriesAFailedPackageAgain(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	ready := func(status corev1.ConditionStatus, reason string) v1.Condition {
		return v1.Condition{Type: v1.TypeReady, Status: status, Reason: v1.ConditionReason(reason), ObservedGeneration: 2}
	}
	rolledBack := &v1.Rollback{From: "x-2", To: "x-1", Generation: 2}
	for name, tc := range map[string]struct {
		ready    v1.Condition
		rollback *v1.Rollback
		paused   bool
		want     string
	}{
		"Healthy":     {ready: ready(corev1.ConditionTrue, "HealthyPackageRevision"), want: "unchanged"},
		"Refused":     {ready: ready(corev1.ConditionFalse, "AdmissionDenied"), want: "retried"},
		"RolledBack":  {ready: ready(corev1.ConditionFalse, "RolledBack"), rollback: rolledBack, want: "retried"},
		"NoContent":   {ready: ready(corev1.ConditionFalse, "TagNotFound"), want: "retried"},
		"Waiting":     {ready: ready(corev1.ConditionFalse, "NeedsAdoption"), want: "unchanged"},
		"Progressing": {ready: ready(corev1.ConditionFalse, string(v1.ReasonProgressing)), want: "unchanged"},
		"Paused":      {ready: ready(corev1.ConditionFalse, "AdmissionDenied"), paused: true, want: "unchanged"},
		"JustChanged": {ready: v1.Condition{
			Type: v1.TypeReady, Status: corev1.ConditionFalse, Reason: "AdmissionDenied", ObservedGeneration: 1,
		}, want: "unchanged"},
		"NoReconciled": {want: "unchanged"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "x", Generation: 2}}
			p.Status.Rollback = tc.rollback
			if tc.paused {
				p.Annotations = map[string]string{v1.AnnotationPaused: "true"}
			}
			p.SetConditions(metav1.Now(), tc.ready)
			cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(p).Build()
			if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
				t.Fatal(err)
			}
			done := Done{Step: &Step{}, Object: p}
			err := done.repeat(t.Context(), writer{Client: cluster})
			word := done.Word
			if err != nil || word != tc.want || (p.Annotations[v1.AnnotationRetry] != "") != (tc.want == "retried") {
				t.Errorf("%q, %v, annotations %v; want %q", word, err, p.Annotations, tc.want)
			}
		})
	}
}

// A wait for another attempt does not end with the failure of the one before it.
func TestAWaitEndsWithTheResultOfTheRequestedAttempt(t *testing.T) {
	p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "x", Generation: 2, Annotations: map[string]string{
		v1.AnnotationRetry: "b",
	}}}
	p.SetConditions(metav1.Now(), v1.Condition{
		Type: v1.TypeHealthy, Status: corev1.ConditionFalse, Message: "RolledBack: rolled back to x-1.",
		ObservedGeneration: 2,
	})
	p.Status.LastHandledRetry = "a"
	if health, err := checkHealth(t.Context(), nil, p); err != nil || health.ready {
		t.Errorf("%+v, %v", health, err)
	}
	p.Status.LastHandledRetry = "b"
	if _, err := checkHealth(t.Context(), nil, p); err == nil {
		t.Error("the failure of the attempt does not end the wait")
	}
}
