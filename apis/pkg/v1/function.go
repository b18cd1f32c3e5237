package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PackageKind returns Function.
func (*Function) PackageKind() string { return FunctionKind }

// PackageSpec returns the part of the spec that all packages have.
func (f *Function) PackageSpec() *PackageSpec { return &f.Spec.PackageSpec }

// PackageStatus returns the part of the status that all packages have.
func (f *Function) PackageStatus() *PackageStatus { return &f.Status.PackageStatus }

// RuntimeSpec returns the runtime fields of the spec.
func (f *Function) RuntimeSpec() *PackageRuntimeSpec { return &f.Spec.PackageRuntimeSpec }

// GetCondition returns the condition of the type, or one with the status Unknown.
func (f *Function) GetCondition(t ConditionType) Condition { return f.Status.GetCondition(t) }

// SetConditions sets conditions for the current generation of the object.
func (f *Function) SetConditions(now metav1.Time, conditions ...Condition) {
	f.Status.SetConditions(f.Generation, now, conditions...)
}

// NewRevision returns an empty FunctionRevision.
func (*Function) NewRevision() PackageRevision {
	return &FunctionRevision{TypeMeta: typeMeta(FunctionRevisionKind)}
}

// NewRevisionList returns an empty list of FunctionRevisions.
func (*Function) NewRevisionList() PackageRevisionList { return &FunctionRevisionList{} }

// Packages returns the items of the list. They are not copies.
func (l *FunctionList) Packages() []Package {
	out := make([]Package, len(l.Items))
	for i := range l.Items {
		out[i] = &l.Items[i]
	}
	return out
}
