package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// A Function describes a function package.
//
// +kubebuilder:object:root=true
type Function struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec FunctionSpec `json:"spec"`
}

// FunctionSpec describes a function package.
type FunctionSpec struct {
	MetaSpec `json:",inline"`

	// Image is the runtime image of the function, if it is not the package image itself.
	// Packages for Crossplane before v2 set it.
	// +optional
	Image *string `json:"image,omitempty"`
}
