package v1

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionType names one aspect of an object's state.
type ConditionType string

// ConditionReason is one CamelCase word that explains the status of a condition.
type ConditionReason string

// Condition is one aspect of the state of an object.
type Condition struct {
	// Type of this condition. An object has at most one condition of each type.
	Type ConditionType `json:"type"`
	// Status of this condition: True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`
	// LastTransitionTime is the last time the status changed.
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`
	// Reason of this status, as one CamelCase word.
	Reason ConditionReason `json:"reason"`
	// Message explains the condition: the state, the cause, and the remedy.
	// +optional
	Message string `json:"message,omitempty"`
	// ObservedGeneration is the metadata.generation that this condition refers
	// to. The condition is out of date if it is lower than the current one.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// ConditionedStatus is the part of a status that holds conditions.
type ConditionedStatus struct {
	// Conditions of the resource.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
}

// GetCondition returns the condition of the type, or one with the status Unknown if there
// is none.
func (s *ConditionedStatus) GetCondition(t ConditionType) Condition {
	for _, c := range s.Conditions {
		if c.Type == t {
			return c
		}
	}
	return Condition{Type: t, Status: corev1.ConditionUnknown}
}

// SetConditions replaces the conditions of the same types and appends the others. A
// condition whose ObservedGeneration is zero gets the given generation.
// LastTransitionTime changes to now only if the status changes.
func (s *ConditionedStatus) SetConditions(generation int64, now metav1.Time, conditions ...Condition) {
	for _, c := range conditions {
		if c.ObservedGeneration == 0 {
			c.ObservedGeneration = generation
		}
		s.set(now, c)
	}
}

// RemoveCondition removes the condition of the type, if it exists.
func (s *ConditionedStatus) RemoveCondition(t ConditionType) {
	s.Conditions = slices.DeleteFunc(s.Conditions, func(c Condition) bool { return c.Type == t })
}

func (s *ConditionedStatus) set(now metav1.Time, c Condition) {
	c.LastTransitionTime = now
	for i, old := range s.Conditions {
		if old.Type != c.Type {
			continue
		}
		if old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
		s.Conditions[i] = c
		return
	}
	s.Conditions = append(s.Conditions, c)
}
