package v1alpha1

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/meta/v1"
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
	// +optional
	Controller *v1.ControllerSpec `json:"controller,omitempty"`

	// PermissionRequests are permissions that the runtime needs, in the form of the first
	// packages. Later packages set them in the controller.
	// +optional
	PermissionRequests []rbacv1.PolicyRule `json:"permissionRequests,omitempty"`
}
