package v1alpha1

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// A Package records an installed package: its CRDs, its controller and its description. Users also create Packages, for
// CRDs and a controller of their own, which then runs in the namespace of the Package.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories=crossplane
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditionedStatus.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="VERSION",type="string",JSONPath=".spec.version"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type Package struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PackageSpec   `json:"spec,omitempty"`
	Status PackageStatus `json:"status,omitempty"`
}

// PackageList is a list of Packages.
//
// +kubebuilder:object:root=true
type PackageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Package `json:"items"`
}

// PackageSpec is the description of a package.
type PackageSpec struct {
	AppMetadata `json:",inline"`

	// CRDs are the kinds that the package defines.
	// +optional
	CRDs []Kind `json:"customresourcedefinitions,omitempty"`
	// Controller is the program of the package.
	// +optional
	Controller ControllerSpec `json:"controller,omitempty"`
	// ServiceAccount changes the ServiceAccount of the controller.
	// +optional
	ServiceAccount *ServiceAccountOptions `json:"serviceAccount,omitempty"`
	// Permissions are the permissions of the controller.
	// +optional
	Permissions PermissionsSpec `json:"permissions,omitempty"`
}

// Kind names a kind of resource.
type Kind struct {
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// +optional
	Kind string `json:"kind,omitempty"`
}

// AppMetadata is the description of a package for people, and the scope of its permissions.
type AppMetadata struct {
	// Title of the package.
	// +optional
	Title string `json:"title,omitempty"`
	// OverviewShort is a line of plain text.
	// +optional
	OverviewShort string `json:"overviewShort,omitempty"`
	// Overview is plain text.
	// +optional
	Overview string `json:"overview,omitempty"`
	// Readme is Markdown.
	// +optional
	Readme string `json:"readme,omitempty"`
	// Category of the package.
	// +optional
	Category string `json:"category,omitempty"`
	// Version of the package.
	// +optional
	Version string `json:"version,omitempty"`
	// Icons of the package, preferred format first.
	// +optional
	Icons []Icon `json:"icons,omitempty"`
	// Maintainers of the package.
	// +optional
	Maintainers []Contributor `json:"maintainers,omitempty"`
	// Owners of the package.
	// +optional
	Owners []Contributor `json:"owners,omitempty"`
	// Company that publishes the package.
	// +optional
	Company string `json:"company,omitempty"`
	// Keywords for searches.
	// +optional
	Keywords []string `json:"keywords,omitempty"`
	// Website of the package.
	// +optional
	Website string `json:"website,omitempty"`
	// Source is the location of the source code.
	// +optional
	Source string `json:"source,omitempty"`
	// License is an SPDX license identifier.
	// +optional
	License string `json:"license,omitempty"`
	// DependsOn are the CRDs that the package requires.
	// +optional
	DependsOn []InstallSpec `json:"dependsOn,omitempty"`
	// PackageType is the type of the package.
	// +optional
	// +kubebuilder:validation:Enum=Provider;Stack;Application;Addon
	PackageType string `json:"packageType,omitempty"`
	// PermissionScope is the scope of the permissions of the controller.
	// +optional
	// +kubebuilder:validation:Enum=Cluster;Namespaced
	PermissionScope string `json:"permissionScope,omitempty"`
}

// Icon is an image.
type Icon struct {
	// Base64IconData is the image in Base64.
	Base64IconData string `json:"base64Data"`
	// MediaType of the image, such as image/svg+xml.
	MediaType string `json:"mediatype"`
}

// Contributor is a person.
type Contributor struct {
	// +optional
	Name string `json:"name,omitempty"`
	// +optional
	Email string `json:"email,omitempty"`
}

// ControllerSpec is the program of a package.
type ControllerSpec struct {
	// ServiceAccount changes the ServiceAccount of the program, as in Crossplane v0.12. An annotation in
	// spec.serviceAccount takes precedence.
	// +optional
	ServiceAccount *ServiceAccountOptions `json:"serviceAccount,omitempty"`
	// Deployment of the program.
	// +optional
	Deployment *ControllerDeployment `json:"deployment,omitempty"`
}

// ControllerDeployment is the Deployment of the program of a package.
type ControllerDeployment struct {
	// Name of the Deployment.
	Name string `json:"name"`
	// Spec is the spec of a Deployment of apps/v1. The API server does not validate it, so that an invalid one affects
	// only its own Package.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Spec runtime.RawExtension `json:"spec"`
}

// PermissionsSpec holds the permissions of the program of a package.
type PermissionsSpec struct {
	// Rules of the role.
	// +optional
	Rules []rbacv1.PolicyRule `json:"rules,omitempty"`
}

// PackageStatus is the observed state of a Package.
type PackageStatus struct {
	ConditionedStatus `json:",inline"`

	// ObservedGeneration is the metadata.generation that this status refers to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// ControllerRef is the Deployment, or the Provider, that runs the program.
	// +optional
	ControllerRef *ObjectReference `json:"controllerRef,omitempty"`
	// RuntimeImage is the image of the program, with the digest that was resolved at the first reconciliation.
	// +optional
	RuntimeImage string `json:"runtimeImage,omitempty"`
}
