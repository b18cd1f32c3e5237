package v1beta1

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A DeploymentRuntimeConfig configures the Deployment, the Service and the
// ServiceAccount of the packages that name it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories={crossplane}
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type DeploymentRuntimeConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec DeploymentRuntimeConfigSpec `json:"spec,omitempty"`
}

// DeploymentRuntimeConfigSpec holds the templates. Fields that are not set default to the
// values of the package manager.
type DeploymentRuntimeConfigSpec struct {
	// DeploymentTemplate is the template of the Deployment.
	// +optional
	DeploymentTemplate *DeploymentTemplate `json:"deploymentTemplate,omitempty"`
	// ServiceTemplate is the template of the Service.
	// +optional
	ServiceTemplate *ServiceTemplate `json:"serviceTemplate,omitempty"`
	// ServiceAccountTemplate is the template of the ServiceAccount.
	// +optional
	ServiceAccountTemplate *ServiceAccountTemplate `json:"serviceAccountTemplate,omitempty"`
}

// DeploymentTemplate is the template of a Deployment.
type DeploymentTemplate struct {
	// Metadata of the Deployment.
	// +optional
	Metadata *ObjectMeta `json:"metadata,omitempty"`
	// Spec of the Deployment.
	// +optional
	Spec *appsv1.DeploymentSpec `json:"spec,omitempty"`
}

// ServiceTemplate is the template of a Service.
type ServiceTemplate struct {
	// Metadata of the Service.
	// +optional
	Metadata *ObjectMeta `json:"metadata,omitempty"`
}

// ServiceAccountTemplate is the template of a ServiceAccount.
type ServiceAccountTemplate struct {
	// Metadata of the ServiceAccount.
	// +optional
	Metadata *ObjectMeta `json:"metadata,omitempty"`
}

// ObjectMeta holds the metadata that a template can set.
type ObjectMeta struct {
	// Name of the object.
	// +optional
	Name *string `json:"name,omitempty"`
	// Annotations of the object.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// Labels of the object.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
}

// DeploymentRuntimeConfigList is a list of DeploymentRuntimeConfigs.
//
// +kubebuilder:object:root=true
type DeploymentRuntimeConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []DeploymentRuntimeConfig `json:"items"`
}
