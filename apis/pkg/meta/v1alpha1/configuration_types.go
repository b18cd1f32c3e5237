package v1alpha1

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

	// Ignore lists files that are not part of the package. Only the first packaging tools
	// wrote it.
	// +optional
	Ignore []IgnoredPath `json:"ignore,omitempty"`
}

// IgnoredPath is a file or folder that is not part of a package.
type IgnoredPath struct {
	// Path relative to the folder of the package.
	Path string `json:"path"`
}
