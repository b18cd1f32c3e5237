package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// An ImageConfig configures how package images whose references begin with a prefix
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

// ImageConfigSpec selects images and configures how they are handled.
type ImageConfigSpec struct {
	// MatchImages are the rules that select images. An image is selected if one of them matches. If several
	// image configs match an image, each purpose (pull secret, access to the registry, mirrors, rewriting,
	// verification, runtime) uses the image config with the longest match among those that configure the
	// purpose, and the first by name if several matches have the same length.
	// +kubebuilder:validation:XValidation:rule="size(self) > 0",message="matchImages should have at least one element."
	MatchImages []ImageMatch `json:"matchImages"`

	// Registry configures the registry of the images.
	// +optional
	Registry *RegistryConfig `json:"registry,omitempty"`

	// Verification configures how the images are verified.
	// +optional
	Verification *ImageVerification `json:"verification,omitempty"`

	// RewriteImage configures how the references of the images are rewritten.
	// +optional
	RewriteImage *ImageRewrite `json:"rewriteImage,omitempty"`

	// Runtime configures the runtime of the packages.
	// +optional
	Runtime *ImageRuntime `json:"runtime,omitempty"`
}

// MatchType is the type of an image match.
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
	// Prefix of the reference. The longest match takes precedence. A prefix that consists of a host, and
	// optionally a port, matches the whole host: the next character of the reference has to be a slash, colon
	// or at sign.
	Prefix string `json:"prefix"`
}

// RegistryConfig configures a registry.
type RegistryConfig struct {
	// Authentication to the registry.
	// +optional
	Authentication *RegistryAuthentication `json:"authentication,omitempty"`

	// CABundle are the certificate authorities (PEM) that are trusted for this
	// registry instead of the system's.
	// +optional
	CABundle string `json:"caBundle,omitempty"`

	// PlainHTTP uses HTTP for the registry, without TLS. Any host on the network path can read the traffic,
	// including credentials, and change the content of a tag.
	// +optional
	PlainHTTP bool `json:"plainHTTP,omitempty"`

	// Mirrors are tried for the images, in this order, before the images' own repositories. A mirror that
	// does not respond, denies access or does not have the image is skipped. Access to a mirror is configured
	// by the image configs that match references to the mirror.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Mirrors []RegistryMirror `json:"mirrors,omitempty"`
}

// RegistryMirror is a copy of another registry, or of a part of it.
type RegistryMirror struct {
	// Prefix replaces the matched prefix in references to the mirror.
	// +kubebuilder:validation:MinLength=1
	Prefix string `json:"prefix"`
}

// RegistryAuthentication configures authentication to a registry.
type RegistryAuthentication struct {
	// PullSecretRef names the secret, in the namespace of the package manager,
	// with the credentials.
	PullSecretRef corev1.LocalObjectReference `json:"pullSecretRef"`
}

// ImageRewrite configures how references are rewritten.
type ImageRewrite struct {
	// Prefix replaces the matched prefix.
	Prefix string `json:"prefix"`
}

// ImageRuntime configures the runtime of packages.
type ImageRuntime struct {
	// ConfigRef names the resource that configures the runtime. It takes precedence over the reference of a
	// package.
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
