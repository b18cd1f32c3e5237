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

// FunctionSpec is what a function package says of itself.
type FunctionSpec struct {
	MetaSpec `json:",inline"`

	// Image is the function's program, where it is not in the package's own
	// image. Packages of Crossplane before v2 have it.
	// +optional
	Image *string `json:"image,omitempty"`
}
