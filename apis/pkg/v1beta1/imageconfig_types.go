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
	// secret, access to the registry, mirrors, rewriting, verification, runtime)
	// takes the one with the longest match among those that say something about
	// that purpose, and the first by name of those that match alike.
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
	// Prefix that the reference begins with. The longest one wins. A prefix that
	// has no more than a host, and perhaps a port, stands for the whole host: what
	// follows in the reference has to begin with a slash, colon or at sign.
	Prefix string `json:"prefix"`
}

// RegistryConfig configures a registry.
type RegistryConfig struct {
	// Authentication against the registry.
	// +optional
	Authentication *RegistryAuthentication `json:"authentication,omitempty"`

	// CABundle are the certificate authorities (PEM) that are trusted for this
	// registry instead of the system's.
	// +optional
	CABundle string `json:"caBundle,omitempty"`

	// PlainHTTP speaks HTTP to the registry, without TLS. Anyone on the way can
	// read what is sent, credentials too, and decide what a tag stands for.
	// +optional
	PlainHTTP bool `json:"plainHTTP,omitempty"`

	// Mirrors are asked for the images, in this order, before the images' own
	// repositories. A mirror that does not answer, refuses access or does not have
	// the image is passed over. Each is reached as the image configs for its own
	// references say.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Mirrors []RegistryMirror `json:"mirrors,omitempty"`
}

// RegistryMirror has the content of another registry, or of a part of it.
type RegistryMirror struct {
	// Prefix takes the place of the prefix that matched, in references to the
	// mirror.
	// +kubebuilder:validation:MinLength=1
	Prefix string `json:"prefix"`
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
