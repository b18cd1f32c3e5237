package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PackageKind returns Provider.
func (*Provider) PackageKind() string { return ProviderKind }

// PackageSpec returns the part of the spec that all packages have.
func (p *Provider) PackageSpec() *PackageSpec { return &p.Spec.PackageSpec }

// PackageStatus returns the part of the status that all packages have.
func (p *Provider) PackageStatus() *PackageStatus { return &p.Status.PackageStatus }

// RuntimeSpec returns the runtime fields of the spec.
func (p *Provider) RuntimeSpec() *PackageRuntimeSpec { return &p.Spec.PackageRuntimeSpec }

// GetCondition returns the condition of the type, or one with the status Unknown.
func (p *Provider) GetCondition(t ConditionType) Condition { return p.Status.GetCondition(t) }

// SetConditions sets conditions for the current generation of the object.
func (p *Provider) SetConditions(now metav1.Time, conditions ...Condition) {
	p.Status.SetConditions(p.Generation, now, conditions...)
}

// NewRevision returns an empty ProviderRevision.
func (*Provider) NewRevision() PackageRevision {
	return &ProviderRevision{TypeMeta: typeMeta(ProviderRevisionKind)}
}

// NewRevisionList returns an empty list of ProviderRevisions.
func (*Provider) NewRevisionList() PackageRevisionList { return &ProviderRevisionList{} }

// Packages returns the items of the list. They are not copies.
func (l *ProviderList) Packages() []Package {
	out := make([]Package, len(l.Items))
	for i := range l.Items {
		out[i] = &l.Items[i]
	}
	return out
}
