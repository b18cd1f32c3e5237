package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// A Provider is a request to install a provider package: new kinds of managed
// resources and the runtime that reconciles them.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories={crossplane,pkg}
// +kubebuilder:printcolumn:name="INSTALLED",type="string",JSONPath=".status.conditions[?(@.type=='Installed')].status"
// +kubebuilder:printcolumn:name="HEALTHY",type="string",JSONPath=".status.conditions[?(@.type=='Healthy')].status"
// +kubebuilder:printcolumn:name="PACKAGE",type="string",JSONPath=".spec.package"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type Provider struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ProviderSpec `json:"spec,omitempty"`
	// Status is the observed state of a Provider. Before it is first written, its observedGeneration is -1, because GitOps
	// tools take an object without conditions and observedGeneration for ready.
	// +kubebuilder:default={"observedGeneration":-1}
	Status ProviderStatus `json:"status,omitempty"`
}

// ProviderSpec is the desired state of a Provider.
type ProviderSpec struct {
	PackageSpec        `json:",inline"`
	PackageRuntimeSpec `json:",inline"`
}

// ProviderStatus is the observed state of a Provider.
type ProviderStatus struct {
	PackageStatus `json:",inline"`
}

// ProviderList is a list of Providers.
//
// +kubebuilder:object:root=true
type ProviderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Provider `json:"items"`
}
