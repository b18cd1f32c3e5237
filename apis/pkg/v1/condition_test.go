package v1

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/google/go-cmp/cmp"
)

func at(second int64) metav1.Time { return metav1.NewTime(time.Unix(second, 0)) }

func TestSetConditions(t *testing.T) {
	p := &Provider{}
	p.Generation = 3

	p.SetConditions(at(1), Unpacking("pulling"), UnknownHealth(""))
	p.SetConditions(at(2), Unpacking("still pulling"))
	p.Generation = 4
	p.SetConditions(at(3), Healthy())

	want := []Condition{
		{
			Type: TypeInstalled, Status: corev1.ConditionFalse, Reason: ReasonUnpacking, Message: "still pulling",
			LastTransitionTime: at(1), ObservedGeneration: 3,
		},
		{
			Type: TypeHealthy, Status: corev1.ConditionTrue, Reason: ReasonHealthy,
			LastTransitionTime: at(3), ObservedGeneration: 4,
		},
	}
	if diff := cmp.Diff(want, p.Status.Conditions); diff != "" {
		t.Error(diff)
	}
}

func TestObservedGenerationIsKept(t *testing.T) {
	r := &FunctionRevision{}
	r.Generation = 9
	c := RuntimeHealthy()
	c.ObservedGeneration = 7
	r.SetConditions(at(1), c)
	if got := r.GetCondition(TypeRuntimeHealthy).ObservedGeneration; got != 7 {
		t.Errorf("ObservedGeneration is %d, want 7, the value in the condition", got)
	}
}

func TestMissingConditionIsUnknown(t *testing.T) {
	got := (&Configuration{}).GetCondition(TypeHealthy)
	if diff := cmp.Diff(Condition{Type: TypeHealthy, Status: corev1.ConditionUnknown}, got); diff != "" {
		t.Error(diff)
	}
}

// TestConditionInvariants proves that, after any sequence of updates, each type occurs once, has
// the value that was set last, and the time of the last change of its status.
func TestConditionInvariants(t *testing.T) {
	one := rapid.Custom(func(t *rapid.T) Condition {
		return Condition{
			Type:   rapid.SampledFrom([]ConditionType{TypeInstalled, TypeHealthy, TypeSynced}).Draw(t, "type"),
			Status: rapid.SampledFrom([]corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse}).Draw(t, "status"),
			Reason: rapid.SampledFrom([]ConditionReason{"A", "B"}).Draw(t, "reason"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		var s ConditionedStatus
		last, changed := map[ConditionType]Condition{}, map[ConditionType]metav1.Time{}
		for i, c := range rapid.SliceOfN(one, 1, 30).Draw(t, "conditions") {
			s.SetConditions(1, at(int64(i)), c)
			if old, ok := last[c.Type]; !ok || old.Status != c.Status {
				changed[c.Type] = at(int64(i))
			}
			last[c.Type] = c
		}
		if len(s.Conditions) != len(last) {
			t.Fatalf("there are %d conditions of %d types", len(s.Conditions), len(last))
		}
		for _, c := range s.Conditions {
			if c.Reason != last[c.Type].Reason || c.Status != last[c.Type].Status {
				t.Errorf("%s is %s, %s", c.Type, c.Status, c.Reason)
			}
			if want := changed[c.Type]; !c.LastTransitionTime.Equal(&want) {
				t.Errorf("%s changed at %v, want %v", c.Type, c.LastTransitionTime, changed[c.Type])
			}
		}
	})
}
