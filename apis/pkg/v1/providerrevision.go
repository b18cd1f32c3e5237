package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PackageKind returns Provider.
func (*ProviderRevision) PackageKind() string { return ProviderKind }

// RevisionSpec returns the part of the spec that all revisions have.
func (r *ProviderRevision) RevisionSpec() *PackageRevisionSpec { return &r.Spec.PackageRevisionSpec }

// RevisionStatus returns the part of the status that all revisions have.
func (r *ProviderRevision) RevisionStatus() *PackageRevisionStatus {
	return &r.Status.PackageRevisionStatus
}

// RuntimeSpec returns the runtime fields of the spec.
func (r *ProviderRevision) RuntimeSpec() *PackageRevisionRuntimeSpec {
	return &r.Spec.PackageRevisionRuntimeSpec
}

// RuntimeStatus returns the runtime fields of the status.
func (r *ProviderRevision) RuntimeStatus() *PackageRevisionRuntimeStatus {
	return &r.Status.PackageRevisionRuntimeStatus
}

// GetCondition returns the condition of the type, or one with the status Unknown.
func (r *ProviderRevision) GetCondition(t ConditionType) Condition { return r.Status.GetCondition(t) }

// SetConditions sets conditions for the current generation of the object.
func (r *ProviderRevision) SetConditions(now metav1.Time, conditions ...Condition) {
	r.Status.SetConditions(r.Generation, now, conditions...)
}

// Revisions returns the items of the list. They are not copies.
func (l *ProviderRevisionList) Revisions() []PackageRevision {
	out := make([]PackageRevision, len(l.Items))
	for i := range l.Items {
		out[i] = &l.Items[i]
	}
	return out
}
