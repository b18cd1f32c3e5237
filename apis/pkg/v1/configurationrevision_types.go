package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// A ConfigurationRevision is the content of one digest of a Configuration, with the settings
// that the Configuration had when the revision was created. The package manager creates and
// maintains revisions; users only change desiredState.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories={crossplane,pkgrev}
// +kubebuilder:printcolumn:name="HEALTHY",type="string",JSONPath=".status.conditions[?(@.type=='RevisionHealthy')].status"
// +kubebuilder:printcolumn:name="IMAGE",type="string",JSONPath=".spec.image"
// +kubebuilder:printcolumn:name="STATE",type="string",JSONPath=".spec.desiredState"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="REVISION",type="string",JSONPath=".spec.revision",priority=1
// +kubebuilder:printcolumn:name="DEP-FOUND",type="string",JSONPath=".status.foundDependencies",priority=1
// +kubebuilder:printcolumn:name="DEP-INSTALLED",type="string",JSONPath=".status.installedDependencies",priority=1
type ConfigurationRevision struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ConfigurationRevisionSpec   `json:"spec,omitempty"`
	Status ConfigurationRevisionStatus `json:"status,omitempty"`
}

// ConfigurationRevisionSpec is the desired state of a ConfigurationRevision.
type ConfigurationRevisionSpec struct {
	PackageRevisionSpec `json:",inline"`
}

// ConfigurationRevisionStatus is the observed state of a ConfigurationRevision.
type ConfigurationRevisionStatus struct {
	PackageRevisionStatus `json:",inline"`
}

// ConfigurationRevisionList is a list of ConfigurationRevisions.
//
// +kubebuilder:object:root=true
type ConfigurationRevisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ConfigurationRevision `json:"items"`
}
