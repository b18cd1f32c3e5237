package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PackageKind returns Configuration.
func (*ConfigurationRevision) PackageKind() string { return ConfigurationKind }

// RevisionSpec returns the part of the spec that all revisions have.
func (r *ConfigurationRevision) RevisionSpec() *PackageRevisionSpec {
	return &r.Spec.PackageRevisionSpec
}

// RevisionStatus returns the part of the status that all revisions have.
func (r *ConfigurationRevision) RevisionStatus() *PackageRevisionStatus {
	return &r.Status.PackageRevisionStatus
}

// RuntimeSpec returns nil: a Configuration has no runtime.
func (*ConfigurationRevision) RuntimeSpec() *PackageRevisionRuntimeSpec { return nil }

// RuntimeStatus returns nil: a Configuration has no runtime.
func (*ConfigurationRevision) RuntimeStatus() *PackageRevisionRuntimeStatus { return nil }

// GetCondition returns the condition of the type, or one with the status Unknown.
func (r *ConfigurationRevision) GetCondition(t ConditionType) Condition {
	return r.Status.GetCondition(t)
}

// SetConditions sets conditions for the current generation of the object.
func (r *ConfigurationRevision) SetConditions(now metav1.Time, conditions ...Condition) {
	r.Status.SetConditions(r.Generation, now, conditions...)
}

// Revisions returns the items of the list. They are not copies.
func (l *ConfigurationRevisionList) Revisions() []PackageRevision {
	out := make([]PackageRevision, len(l.Items))
	for i := range l.Items {
		out[i] = &l.Items[i]
	}
	return out
}
