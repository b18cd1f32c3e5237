package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PackageKind is Provider.
func (*ProviderRevision) PackageKind() string { return ProviderKind }

// RevisionSpec is the part of the spec that all revisions have.
func (r *ProviderRevision) RevisionSpec() *PackageRevisionSpec { return &r.Spec.PackageRevisionSpec }

// RevisionStatus is the part of the status that all revisions have.
func (r *ProviderRevision) RevisionStatus() *PackageRevisionStatus {
	return &r.Status.PackageRevisionStatus
}

// RuntimeSpec is the part of the spec about the provider's program.
func (r *ProviderRevision) RuntimeSpec() *PackageRevisionRuntimeSpec {
	return &r.Spec.PackageRevisionRuntimeSpec
}

// RuntimeStatus is the part of the status about the provider's program.
func (r *ProviderRevision) RuntimeStatus() *PackageRevisionRuntimeStatus {
	return &r.Status.PackageRevisionRuntimeStatus
}

// GetCondition gives the condition of the type, or one of the status Unknown.
func (r *ProviderRevision) GetCondition(t ConditionType) Condition { return r.Status.GetCondition(t) }

// SetConditions sets conditions that speak about this generation of the object.
func (r *ProviderRevision) SetConditions(now metav1.Time, conditions ...Condition) {
	r.Status.SetConditions(r.Generation, now, conditions...)
}

// Revisions gives the items of the list. They are not copies.
func (l *ProviderRevisionList) Revisions() []PackageRevision {
	out := make([]PackageRevision, len(l.Items))
	for i := range l.Items {
		out[i] = &l.Items[i]
	}
	return out
}
