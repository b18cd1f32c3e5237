package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// An ImageConfig says how package images whose references begin with a prefix
// are pulled, rewritten, verified and run.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories={crossplane}
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type ImageConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ImageConfigSpec `json:"spec,omitempty"`
}

// ImageConfigSpec says which images are meant, and what is done with them.
type ImageConfigSpec struct {
	// MatchImages are the rules that say which images are meant. One match is
	// enough. Where several image configs match an image, each purpose (pull
	// secret, rewriting, verification, runtime) takes the one with the longest
	// match among those that say something about that purpose.
	// +kubebuilder:validation:XValidation:rule="size(self) > 0",message="matchImages should have at least one element."
	MatchImages []ImageMatch `json:"matchImages"`

	// Registry configures the registry of the images.
	// +optional
	Registry *RegistryConfig `json:"registry,omitempty"`

	// Verification says how the images are verified.
	// +optional
	Verification *ImageVerification `json:"verification,omitempty"`

	// RewriteImage says how the references of the images are rewritten.
	// +optional
	RewriteImage *ImageRewrite `json:"rewriteImage,omitempty"`

	// Runtime configures the runtime of the packages.
	// +optional
	Runtime *ImageRuntime `json:"runtime,omitempty"`
}

// MatchType is a way of matching an image.
//
// +kubebuilder:validation:Enum=Prefix
type MatchType string

// Prefix matches references that begin with a string.
const Prefix MatchType = "Prefix"

// ImageMatch is a rule that matches images.
type ImageMatch struct {
	// Type of the match.
	// +optional
	// +kubebuilder:default=Prefix
	Type MatchType `json:"type,omitempty"`
	// Prefix that the reference begins with. The longest one wins.
	Prefix string `json:"prefix"`
}

// RegistryConfig configures a registry.
type RegistryConfig struct {
	// Authentication against the registry.
	// +optional
	Authentication *RegistryAuthentication `json:"authentication,omitempty"`
}

// RegistryAuthentication is how to authenticate against a registry.
type RegistryAuthentication struct {
	// PullSecretRef names the secret, in the namespace of the package manager,
	// with the credentials.
	PullSecretRef corev1.LocalObjectReference `json:"pullSecretRef"`
}

// ImageRewrite says how references are rewritten.
type ImageRewrite struct {
	// Prefix takes the place of the prefix that matched.
	Prefix string `json:"prefix"`
}

// ImageRuntime configures the runtime of packages.
type ImageRuntime struct {
	// ConfigRef names the resource that configures the runtime. It wins over the
	// one that a package names.
	// +optional
	ConfigRef *v1.RuntimeConfigReference `json:"configRef,omitempty"`
}

// ImageConfigList is a list of ImageConfigs.
//
// +kubebuilder:object:root=true
type ImageConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ImageConfig `json:"items"`
}
