package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// Reasons of the condition Ready, as the first generation of package managers wrote them.
const (
	ReasonAvailable v1.ConditionReason = "Available"
	ReasonCreating  v1.ConditionReason = "Creating"
	ReasonDeleting  v1.ConditionReason = "Deleting"
)

// ConditionedStatus is the part of a status that holds conditions. In this version of the API it is a field of its own.
type ConditionedStatus struct {
	// ConditionedStatus holds the conditions.
	// +optional
	ConditionedStatus v1.ConditionedStatus `json:"conditionedStatus,omitempty"`
}

// GetCondition returns the condition of the type, or one with the status Unknown if there is none.
func (s *ConditionedStatus) GetCondition(t v1.ConditionType) v1.Condition {
	return s.ConditionedStatus.GetCondition(t)
}

// ObjectReference names another object.
type ObjectReference struct {
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// +optional
	FieldPath string `json:"fieldPath,omitempty"`
	// +optional
	Kind string `json:"kind,omitempty"`
	// +optional
	Name string `json:"name,omitempty"`
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// +optional
	UID string `json:"uid,omitempty"`
}

// SecretReference names a Secret of the namespace.
type SecretReference struct {
	// +optional
	Name string `json:"name,omitempty"`
}

// ServiceAccountOptions change the ServiceAccount of the controller of a package.
type ServiceAccountOptions struct {
	// Annotations are added to the ServiceAccount.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// InstallSpec is the desired state of an install object. Either package or crd must be set.
type InstallSpec struct {
	// Source is the registry of the package and of the images of its controller that name no registry. Default is the
	// registry of the manager.
	// +optional
	Source string `json:"source,omitempty"`
	// Package is the reference of the package, with or without a registry.
	// +optional
	Package string `json:"package,omitempty"`
	// CRD is a kind of resource, as PLURAL.GROUP or PLURAL.GROUP/VERSION, whose package is installed.
	// +optional
	CRD string `json:"crd,omitempty"`
	// ImagePullPolicy of the package and of its controller.
	// +optional
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`
	// ImagePullSecrets are names of Secrets with credentials for the registry.
	// +optional
	ImagePullSecrets []SecretReference `json:"imagePullSecrets,omitempty"`
	// ServiceAccount changes the ServiceAccount of the controller.
	// +optional
	ServiceAccount *ServiceAccountOptions `json:"serviceAccount,omitempty"`
}

// InstallStatus is the observed state of an install object.
type InstallStatus struct {
	ConditionedStatus `json:",inline"`

	// ObservedGeneration is the metadata.generation that this status refers to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// InstallJob is the Job with which earlier package managers unpacked the package. It is kept as it is.
	// +optional
	InstallJob *ObjectReference `json:"installJob,omitempty"`
	// PackageRecord is the Package that records the installation.
	// +optional
	PackageRecord *ObjectReference `json:"packageRecord,omitempty"`
	// Provider is the name of the Provider of pkg.crossplane.io that has the CRDs of the package.
	// +optional
	Provider string `json:"provider,omitempty"`
	// ChosenPackage is the package that was chosen for spec.crd. It is kept until spec.crd changes.
	// +optional
	ChosenPackage *ChosenPackage `json:"chosenPackage,omitempty"`
}

// ChosenPackage records the package that was chosen for a kind of resource.
type ChosenPackage struct {
	// CRD is the value of spec.crd to which the choice applies.
	CRD string `json:"crd"`
	// Package is the reference of the chosen package.
	Package string `json:"package"`
}
