package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// A ProviderRevision is the content of one digest of a Provider, with the settings
// that the Provider had when the revision was created. The package manager creates and
// maintains revisions; users only change desiredState.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
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
type ProviderRevision struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ProviderRevisionSpec   `json:"spec,omitempty"`
	Status ProviderRevisionStatus `json:"status,omitempty"`
}

// ProviderRevisionSpec is the desired state of a ProviderRevision.
type ProviderRevisionSpec struct {
	PackageRevisionSpec        `json:",inline"`
	PackageRevisionRuntimeSpec `json:",inline"`
}

// ProviderRevisionStatus is the observed state of a ProviderRevision.
type ProviderRevisionStatus struct {
	PackageRevisionStatus        `json:",inline"`
	PackageRevisionRuntimeStatus `json:",inline"`
}

// ProviderRevisionList is a list of ProviderRevisions.
//
// +kubebuilder:object:root=true
type ProviderRevisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ProviderRevision `json:"items"`
}
