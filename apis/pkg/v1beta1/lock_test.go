package v1beta1

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestLockConditions(t *testing.T) {
	l := &Lock{}
	l.Generation = 2
	l.SetConditions(metav1.NewTime(time.Unix(1, 0)), ResolutionFailed("no version of a fits"))
	if c := l.GetCondition(TypeResolved); c.Status != corev1.ConditionFalse || c.ObservedGeneration != 2 ||
		c.Message == "" {
		t.Errorf("%+v", c)
	}
	l.SetConditions(metav1.NewTime(time.Unix(2, 0)), ResolutionSucceeded())
	c := l.GetCondition(TypeResolved)
	if want := metav1.NewTime(time.Unix(2, 0)); c.Status != corev1.ConditionTrue || c.Message != "" ||
		!c.LastTransitionTime.Equal(&want) {
		t.Errorf("%+v", c)
	}
}
