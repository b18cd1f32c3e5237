package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// A Configuration describes a configuration package.
//
// +kubebuilder:object:root=true
type Configuration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ConfigurationSpec `json:"spec"`
}

// ConfigurationSpec describes a configuration package.
type ConfigurationSpec struct {
	MetaSpec `json:",inline"`
}
