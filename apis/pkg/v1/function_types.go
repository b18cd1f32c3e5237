package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// A Function is a request to install a function package: a runtime for a step of a composition pipeline.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:scope=Cluster,categories={crossplane,pkg}
// +kubebuilder:printcolumn:name="INSTALLED",type="string",JSONPath=".status.conditions[?(@.type=='Installed')].status"
// +kubebuilder:printcolumn:name="HEALTHY",type="string",JSONPath=".status.conditions[?(@.type=='Healthy')].status"
// +kubebuilder:printcolumn:name="PACKAGE",type="string",JSONPath=".spec.package"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type Function struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec FunctionSpec `json:"spec,omitempty"`
	// Status is the observed state of a Function. Before it is first written, its observedGeneration is -1, because GitOps
	// tools take an object without conditions and observedGeneration for ready.
	// +kubebuilder:default={"observedGeneration":-1}
	Status FunctionStatus `json:"status,omitempty"`
}

// FunctionSpec is the desired state of a Function.
type FunctionSpec struct {
	PackageSpec        `json:",inline"`
	PackageRuntimeSpec `json:",inline"`
}

// FunctionStatus is the observed state of a Function.
type FunctionStatus struct {
	PackageStatus `json:",inline"`
}

// FunctionList is a list of Functions.
//
// +kubebuilder:object:root=true
type FunctionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Function `json:"items"`
}
