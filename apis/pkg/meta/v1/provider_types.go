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

// ProviderSpec is what a provider package says of itself.
type ProviderSpec struct {
	MetaSpec `json:",inline"`

	// Controller is the provider's program, where it is not in the package's own
	// image. Packages of Crossplane before v2 have it.
	// +optional
	Controller *ControllerSpec `json:"controller,omitempty"`
}

// ControllerSpec is the program of a package.
type ControllerSpec struct {
	// Image of the program. Without it, the package's own image is the program.
	// +optional
	Image *string `json:"image,omitempty"`
	// PermissionRequests are rights that the program needs beyond those over the
	// resources of its package. Who installs the package may refuse them, and
	// with them the package.
	// +optional
	PermissionRequests []rbacv1.PolicyRule `json:"permissionRequests,omitempty"`
}
