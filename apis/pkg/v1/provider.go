package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PackageKind is Provider.
func (*Provider) PackageKind() string { return ProviderKind }

// PackageSpec is the part of the spec that all packages have.
func (p *Provider) PackageSpec() *PackageSpec { return &p.Spec.PackageSpec }

// PackageStatus is the part of the status that all packages have.
func (p *Provider) PackageStatus() *PackageStatus { return &p.Status.PackageStatus }

// RuntimeSpec is the part of the spec about the provider's program.
func (p *Provider) RuntimeSpec() *PackageRuntimeSpec { return &p.Spec.PackageRuntimeSpec }

// GetCondition gives the condition of the type, or one of the status Unknown.
func (p *Provider) GetCondition(t ConditionType) Condition { return p.Status.GetCondition(t) }

// SetConditions sets conditions that speak about this generation of the object.
func (p *Provider) SetConditions(now metav1.Time, conditions ...Condition) {
	p.Status.SetConditions(p.Generation, now, conditions...)
}

// NewRevision makes an empty ProviderRevision.
func (*Provider) NewRevision() PackageRevision {
	return &ProviderRevision{TypeMeta: typeMeta(ProviderRevisionKind)}
}

// NewRevisionList makes an empty list of ProviderRevisions.
func (*Provider) NewRevisionList() PackageRevisionList { return &ProviderRevisionList{} }

// Packages gives the items of the list. They are not copies.
func (l *ProviderList) Packages() []Package {
	out := make([]Package, len(l.Items))
	for i := range l.Items {
		out[i] = &l.Items[i]
	}
	return out
}
