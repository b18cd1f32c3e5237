package v1

// PackageRuntimeSpec holds the spec fields common to packages with a runtime.
type PackageRuntimeSpec struct {
	// RuntimeConfigRef names the resource that configures the runtime of the
	// package. Default is the DeploymentRuntimeConfig "default".
	// +optional
	// +kubebuilder:default={"name": "default"}
	RuntimeConfigRef *RuntimeConfigReference `json:"runtimeConfigRef,omitempty"`

	// ControllerConfigRef names a ControllerConfig. It is deprecated: use
	// runtimeConfigRef for new packages.
	// +optional
	ControllerConfigRef *ControllerConfigReference `json:"controllerConfigRef,omitempty"`
}

// RuntimeConfigReference names a resource that configures a runtime.
type RuntimeConfigReference struct {
	// APIVersion of the referent.
	// +optional
	// +kubebuilder:default="pkg.crossplane.io/v1beta1"
	APIVersion *string `json:"apiVersion,omitempty"`
	// Kind of the referent.
	// +optional
	// +kubebuilder:default="DeploymentRuntimeConfig"
	Kind *string `json:"kind,omitempty"`
	// Name of the referent.
	Name string `json:"name"`
}

// ControllerConfigReference names a ControllerConfig.
type ControllerConfigReference struct {
	// Name of the ControllerConfig.
	Name string `json:"name"`
}

// PackageRevisionRuntimeSpec holds the spec fields common to revisions with a
// runtime.
type PackageRevisionRuntimeSpec struct {
	PackageRuntimeSpec `json:",inline"`

	// TLSServerSecretName is the name of the secret with the server certificate of the
	// runtime.
	// +optional
	TLSServerSecretName *string `json:"tlsServerSecretName,omitempty"`
	// TLSClientSecretName is the name of the secret with the client certificate of the
	// runtime.
	// +optional
	TLSClientSecretName *string `json:"tlsClientSecretName,omitempty"`
}

// PackageRevisionRuntimeStatus holds the status fields common to revisions with a
// runtime.
type PackageRevisionRuntimeStatus struct {
	// TLSServerSecretName is the name of the secret with the server certificate of the
	// runtime, once it exists.
	// +optional
	TLSServerSecretName *string `json:"tlsServerSecretName,omitempty"`
	// TLSClientSecretName is the name of the secret with the client certificate of the
	// runtime, once it exists.
	// +optional
	TLSClientSecretName *string `json:"tlsClientSecretName,omitempty"`
	// RuntimeImage is the image of the runtime, with the digest that was resolved at the
	// first reconciliation of the revision.
	// +optional
	RuntimeImage string `json:"runtimeImage,omitempty"`
}
