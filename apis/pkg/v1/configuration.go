package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PackageKind returns Configuration.
func (*Configuration) PackageKind() string { return ConfigurationKind }

// PackageSpec returns the part of the spec that all packages have.
func (c *Configuration) PackageSpec() *PackageSpec { return &c.Spec.PackageSpec }

// PackageStatus returns the part of the status that all packages have.
func (c *Configuration) PackageStatus() *PackageStatus { return &c.Status.PackageStatus }

// RuntimeSpec returns nil: a Configuration has no runtime.
func (*Configuration) RuntimeSpec() *PackageRuntimeSpec { return nil }

// GetCondition returns the condition of the type, or one with the status Unknown.
func (c *Configuration) GetCondition(t ConditionType) Condition { return c.Status.GetCondition(t) }

// SetConditions sets conditions for the current generation of the object.
func (c *Configuration) SetConditions(now metav1.Time, conditions ...Condition) {
	c.Status.SetConditions(c.Generation, now, conditions...)
}

// NewRevision returns an empty ConfigurationRevision.
func (*Configuration) NewRevision() PackageRevision {
	return &ConfigurationRevision{TypeMeta: typeMeta(ConfigurationRevisionKind)}
}

// NewRevisionList returns an empty list of ConfigurationRevisions.
func (*Configuration) NewRevisionList() PackageRevisionList { return &ConfigurationRevisionList{} }

// Packages returns the items of the list. They are not copies.
func (l *ConfigurationList) Packages() []Package {
	out := make([]Package, len(l.Items))
	for i := range l.Items {
		out[i] = &l.Items[i]
	}
	return out
}
