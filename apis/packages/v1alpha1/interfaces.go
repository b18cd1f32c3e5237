package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// Object is an object with conditions: an install object or a Package.
//
// +kubebuilder:object:generate=false
type Object interface {
	metav1.Object
	runtime.Object
	v1.Conditioned

	// PackageKind returns the kind of the object.
	PackageKind() string
}

var _ Object = &Package{}

// Install is an install object: a ClusterPackageInstall or a PackageInstall.
//
// +kubebuilder:object:generate=false
type Install interface {
	Object

	// InstallSpec returns the spec of the object.
	InstallSpec() *InstallSpec
	// InstallStatus returns the status of the object.
	InstallStatus() *InstallStatus
}

var _, _ Install = &ClusterPackageInstall{}, &PackageInstall{}

// NewInstall returns an empty install object of a kind, with its type set. It returns nil for a kind that is not one of
// InstallKinds.
func NewInstall(kind string) Install {
	switch kind {
	case ClusterPackageInstallKind:
		return &ClusterPackageInstall{TypeMeta: typeMeta(kind)}
	case PackageInstallKind:
		return &PackageInstall{TypeMeta: typeMeta(kind)}
	}
	return nil
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: GroupVersion.String(), Kind: kind}
}

// PackageKind returns ClusterPackageInstallKind.
func (i *ClusterPackageInstall) PackageKind() string { return ClusterPackageInstallKind }

// ReportedStatus returns the conditions and the observed generation.
func (i *ClusterPackageInstall) ReportedStatus() (*v1.ConditionedStatus, *int64) {
	return &i.Status.ConditionedStatus.ConditionedStatus, &i.Status.ObservedGeneration
}

// InstallSpec returns the spec.
func (i *ClusterPackageInstall) InstallSpec() *InstallSpec { return &i.Spec }

// InstallStatus returns the status.
func (i *ClusterPackageInstall) InstallStatus() *InstallStatus { return &i.Status }

// GetCondition returns the condition of the type.
func (i *ClusterPackageInstall) GetCondition(t v1.ConditionType) v1.Condition {
	return i.Status.GetCondition(t)
}

// SetConditions sets conditions for the current generation.
func (i *ClusterPackageInstall) SetConditions(now metav1.Time, c ...v1.Condition) {
	i.Status.ConditionedStatus.ConditionedStatus.SetConditions(i.Generation, now, c...)
}

// PackageKind returns PackageInstallKind.
func (i *PackageInstall) PackageKind() string { return PackageInstallKind }

// ReportedStatus returns the conditions and the observed generation.
func (i *PackageInstall) ReportedStatus() (*v1.ConditionedStatus, *int64) {
	return &i.Status.ConditionedStatus.ConditionedStatus, &i.Status.ObservedGeneration
}

// InstallSpec returns the spec.
func (i *PackageInstall) InstallSpec() *InstallSpec { return &i.Spec }

// InstallStatus returns the status.
func (i *PackageInstall) InstallStatus() *InstallStatus { return &i.Status }

// GetCondition returns the condition of the type.
func (i *PackageInstall) GetCondition(t v1.ConditionType) v1.Condition {
	return i.Status.GetCondition(t)
}

// SetConditions sets conditions for the current generation.
func (i *PackageInstall) SetConditions(now metav1.Time, c ...v1.Condition) {
	i.Status.ConditionedStatus.ConditionedStatus.SetConditions(i.Generation, now, c...)
}

// GetCondition returns the condition of the type.
func (p *Package) GetCondition(t v1.ConditionType) v1.Condition { return p.Status.GetCondition(t) }

// SetConditions sets conditions for the current generation.
func (p *Package) SetConditions(now metav1.Time, c ...v1.Condition) {
	p.Status.ConditionedStatus.ConditionedStatus.SetConditions(p.Generation, now, c...)
}

// PackageKind returns PackageKind.
func (p *Package) PackageKind() string { return PackageKind }

// ReportedStatus returns the conditions and the observed generation.
func (p *Package) ReportedStatus() (*v1.ConditionedStatus, *int64) {
	return &p.Status.ConditionedStatus.ConditionedStatus, &p.Status.ObservedGeneration
}
