package v1

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Provider describes a provider package.
//
// +kubebuilder:object:root=true
type Provider struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ProviderSpec `json:"spec"`
}

// ProviderSpec describes a provider package.
type ProviderSpec struct {
	MetaSpec `json:",inline"`

	// Controller configures the runtime of the provider, if it is not the package image itself.
	// Packages for Crossplane before v2 set it.
	// +optional
	Controller *ControllerSpec `json:"controller,omitempty"`
}

// ControllerSpec describes the runtime of a package.
type ControllerSpec struct {
	// Image is the runtime image. Default is the package image itself.
	// +optional
	Image *string `json:"image,omitempty"`
	// PermissionRequests are permissions that the runtime needs beyond those for the resources
	// of its package. If the administrator denies them, the package is not installed.
	// +optional
	PermissionRequests []rbacv1.PolicyRule `json:"permissionRequests,omitempty"`
}
