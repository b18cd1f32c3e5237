package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A ControllerConfig configures the Deployment and the ServiceAccount of the
// packages that name it. New packages use a DeploymentRuntimeConfig instead.
//
// Labels and annotations of the ControllerConfig itself are copied to the ServiceAccount.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:deprecatedversion:warning="ControllerConfig.pkg.crossplane.io/v1alpha1 is deprecated. Use DeploymentRuntimeConfig from pkg.crossplane.io/v1beta1 instead."
type ControllerConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ControllerConfigSpec `json:"spec,omitempty"`
}

// ControllerConfigSpec holds the settings. Fields that are not set default to the values
// of the package manager. Each field has the meaning of the field of the same name in a
// pod or its container.
type ControllerConfigSpec struct {
	// Metadata of the pods.
	// +optional
	Metadata *PodObjectMeta `json:"metadata,omitempty"`
	// Replicas is the number of pods. Default is 1.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// Image is the runtime image, instead of the image of the package.
	// +optional
	Image *string `json:"image,omitempty"`
	// ImagePullPolicy of the runtime image.
	// +optional
	ImagePullPolicy *corev1.PullPolicy `json:"imagePullPolicy,omitempty"`
	// ImagePullSecrets are names of secrets with credentials for the registry.
	// +optional
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
	// NodeName of the node on which the pods run.
	// +optional
	NodeName *string `json:"nodeName,omitempty"`
	// NodeSelector selects the nodes on which the pods run.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Affinity of the pods.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`
	// Tolerations of the pods.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// PriorityClassName of the pods.
	// +optional
	PriorityClassName *string `json:"priorityClassName,omitempty"`
	// RuntimeClassName of the pods.
	// +optional
	RuntimeClassName *string `json:"runtimeClassName,omitempty"`
	// ServiceAccountName of the pods, instead of a ServiceAccount of the package's own.
	// +optional
	ServiceAccountName *string `json:"serviceAccountName,omitempty"`
	// PodSecurityContext of the pods.
	// +optional
	PodSecurityContext *corev1.PodSecurityContext `json:"podSecurityContext,omitempty"`
	// SecurityContext of the container.
	// +optional
	SecurityContext *corev1.SecurityContext `json:"securityContext,omitempty"`
	// Resources of the container.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// Args of the container.
	// +optional
	Args []string `json:"args,omitempty"`
	// Env of the container.
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`
	// EnvFrom are sources of the container's environment.
	// +optional
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`
	// Ports of the container.
	// +optional
	Ports []corev1.ContainerPort `json:"ports,omitempty"`
	// Volumes of the pods.
	// +optional
	Volumes []corev1.Volume `json:"volumes,omitempty"`
	// VolumeMounts of the container.
	// +optional
	VolumeMounts []corev1.VolumeMount `json:"volumeMounts,omitempty"`
}

// PodObjectMeta holds the metadata that can be set on pods.
type PodObjectMeta struct {
	// Annotations of the pods.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// Labels of the pods. They cannot replace the labels that select the pods.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
}

// ControllerConfigList is a list of ControllerConfigs.
//
// +kubebuilder:object:root=true
type ControllerConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ControllerConfig `json:"items"`
}
