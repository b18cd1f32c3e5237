package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DefaultProviderConfig is the name of the ProviderConfig that Greetings use
// when they name none. It does not have to exist.
const DefaultProviderConfig = "default"

// A ProviderConfig configures Greetings that refer to it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories={crossplane,hello}
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type ProviderConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ProviderConfigSpec `json:"spec,omitempty"`
}

// ProviderConfigSpec is the desired state of a ProviderConfig.
type ProviderConfigSpec struct {
	// Punctuation ends every message.
	// +optional
	// +kubebuilder:default="!"
	// +kubebuilder:validation:MaxLength=8
	Punctuation *string `json:"punctuation,omitempty"`
}

// ProviderConfigList is a list of ProviderConfigs.
//
// +kubebuilder:object:root=true
type ProviderConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ProviderConfig `json:"items"`
}
