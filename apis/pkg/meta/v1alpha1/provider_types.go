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

// ProviderSpec is what a provider package says of itself.
type ProviderSpec struct {
	MetaSpec `json:",inline"`

	// Controller is the provider's program, where it is not in the package's own
	// image.
	// +optional
	Controller *v1.ControllerSpec `json:"controller,omitempty"`

	// PermissionRequests are rights that the program needs, as the first
	// packages wrote them. Later ones have them in the controller.
	// +optional
	PermissionRequests []rbacv1.PolicyRule `json:"permissionRequests,omitempty"`
}
