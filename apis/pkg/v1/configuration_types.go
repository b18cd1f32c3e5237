package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// A Configuration is a request to install a configuration package: new kinds of
// composite resources and the compositions that implement them.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories={crossplane,pkg}
// +kubebuilder:printcolumn:name="INSTALLED",type="string",JSONPath=".status.conditions[?(@.type=='Installed')].status"
// +kubebuilder:printcolumn:name="HEALTHY",type="string",JSONPath=".status.conditions[?(@.type=='Healthy')].status"
// +kubebuilder:printcolumn:name="PACKAGE",type="string",JSONPath=".spec.package"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type Configuration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ConfigurationSpec `json:"spec,omitempty"`
	// Status is the observed state of a Configuration. Before it is first written, its observedGeneration is -1, because
	// GitOps tools take an object without conditions and observedGeneration for ready.
	// +kubebuilder:default={"observedGeneration":-1}
	Status ConfigurationStatus `json:"status,omitempty"`
}

// ConfigurationSpec is the desired state of a Configuration.
type ConfigurationSpec struct {
	PackageSpec `json:",inline"`
}

// ConfigurationStatus is the observed state of a Configuration.
type ConfigurationStatus struct {
	PackageStatus `json:",inline"`
}

// ConfigurationList is a list of Configurations.
//
// +kubebuilder:object:root=true
type ConfigurationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Configuration `json:"items"`
}
