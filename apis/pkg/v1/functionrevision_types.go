package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// A FunctionRevision is the content of one digest of a Function, with the settings
// that the Function had when the revision was created. The package manager creates and
// maintains revisions; users only change desiredState.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:scope=Cluster,categories={crossplane,pkgrev}
// +kubebuilder:printcolumn:name="HEALTHY",type="string",JSONPath=".status.conditions[?(@.type=='RevisionHealthy')].status"
// +kubebuilder:printcolumn:name="RUNTIME-HEALTHY",type="string",JSONPath=".status.conditions[?(@.type=='RuntimeHealthy')].status"
// +kubebuilder:printcolumn:name="RUNTIME-ACTIVE",type="string",JSONPath=".status.conditions[?(@.type=='RuntimeActive')].status"
// +kubebuilder:printcolumn:name="IMAGE",type="string",JSONPath=".spec.image"
// +kubebuilder:printcolumn:name="STATE",type="string",JSONPath=".spec.desiredState"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="REVISION",type="string",JSONPath=".spec.revision",priority=1
// +kubebuilder:printcolumn:name="DEP-FOUND",type="string",JSONPath=".status.foundDependencies",priority=1
// +kubebuilder:printcolumn:name="DEP-INSTALLED",type="string",JSONPath=".status.installedDependencies",priority=1
type FunctionRevision struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   FunctionRevisionSpec   `json:"spec,omitempty"`
	Status FunctionRevisionStatus `json:"status,omitempty"`
}

// FunctionRevisionSpec is the desired state of a FunctionRevision.
type FunctionRevisionSpec struct {
	PackageRevisionSpec        `json:",inline"`
	PackageRevisionRuntimeSpec `json:",inline"`
}

// FunctionRevisionStatus is the observed state of a FunctionRevision.
type FunctionRevisionStatus struct {
	PackageRevisionStatus        `json:",inline"`
	PackageRevisionRuntimeStatus `json:",inline"`

	// Endpoint is the gRPC target at which the function serves, for example
	// "dns:///function-auto-ready.crossplane-system:9443".
	// +optional
	Endpoint string `json:"endpoint,omitempty"`
}

// FunctionRevisionList is a list of FunctionRevisions.
//
// +kubebuilder:object:root=true
type FunctionRevisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []FunctionRevision `json:"items"`
}
