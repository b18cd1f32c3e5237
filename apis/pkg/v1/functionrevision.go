package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PackageKind returns Function.
func (*FunctionRevision) PackageKind() string { return FunctionKind }

// RevisionSpec returns the part of the spec that all revisions have.
func (r *FunctionRevision) RevisionSpec() *PackageRevisionSpec { return &r.Spec.PackageRevisionSpec }

// RevisionStatus returns the part of the status that all revisions have.
func (r *FunctionRevision) RevisionStatus() *PackageRevisionStatus {
	return &r.Status.PackageRevisionStatus
}

// RuntimeSpec returns the runtime fields of the spec.
func (r *FunctionRevision) RuntimeSpec() *PackageRevisionRuntimeSpec {
	return &r.Spec.PackageRevisionRuntimeSpec
}

// RuntimeStatus returns the runtime fields of the status.
func (r *FunctionRevision) RuntimeStatus() *PackageRevisionRuntimeStatus {
	return &r.Status.PackageRevisionRuntimeStatus
}

// GetCondition returns the condition of the type, or one with the status Unknown.
func (r *FunctionRevision) GetCondition(t ConditionType) Condition { return r.Status.GetCondition(t) }

// SetConditions sets conditions for the current generation of the object.
func (r *FunctionRevision) SetConditions(now metav1.Time, conditions ...Condition) {
	r.Status.SetConditions(r.Generation, now, conditions...)
}

// Revisions returns the items of the list. They are not copies.
func (l *FunctionRevisionList) Revisions() []PackageRevision {
	out := make([]PackageRevision, len(l.Items))
	for i := range l.Items {
		out[i] = &l.Items[i]
	}
	return out
}
