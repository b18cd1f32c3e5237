package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// The Lock records which packages are installed at which versions, and the dependencies of
// each. It is derived from the active revisions and rebuilt if it is
// missing or wrong. A cluster has one Lock, with the name "lock".
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type Lock struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Packages are the installed packages.
	// +optional
	Packages []LockPackage `json:"packages,omitempty"`

	Status LockStatus `json:"status,omitempty"`
}

// LockStatus is the observed state of the Lock.
type LockStatus struct {
	v1.ConditionedStatus `json:",inline"`
}

// PackageType is a kind of package in older entries.
//
// +kubebuilder:validation:Enum=Configuration;Provider;Function
type PackageType string

// Package types.
const (
	ConfigurationPackageType PackageType = "Configuration"
	ProviderPackageType      PackageType = "Provider"
	FunctionPackageType      PackageType = "Function"
)

// LockPackage is an installed package.
type LockPackage struct {
	// Name of the revision.
	Name string `json:"name"`

	// APIVersion of the package.
	// +optional
	APIVersion *string `json:"apiVersion,omitempty"`
	// Kind of the package.
	// +optional
	Kind *string `json:"kind,omitempty"`
	// Type of the package. New entries have an apiVersion and a kind instead.
	// +optional
	Type *PackageType `json:"type,omitempty"`

	// Source is the repository of the package, with its registry and without a
	// tag or digest.
	Source string `json:"source"`
	// Version is the tag or the digest of the package.
	Version string `json:"version"`

	// Dependencies of the package, direct ones only. The API server requires the list,
	// which may be empty but not null.
	Dependencies []Dependency `json:"dependencies"`

	// OptionalDependencies constrain the versions of packages that may be installed. They
	// are a separate list because other tools treat every entry of dependencies as
	// required.
	// +optional
	OptionalDependencies []Dependency `json:"optionalDependencies,omitempty"`

	// Owns lists the objects that the package installed and controls, by kind. It is
	// missing during an install, and for a package without objects.
	// +optional
	Owns []LockOwned `json:"owns,omitempty"`
}

// LockOwned are the objects of one kind that a package controls.
type LockOwned struct {
	// APIVersion of the objects.
	APIVersion string `json:"apiVersion"`
	// Kind of the objects.
	Kind string `json:"kind"`
	// Count is the number of the objects.
	Count int64 `json:"count"`
	// Names of the objects, in order. All of them are omitted if the Lock would become too
	// large for the API server.
	// +optional
	Names []string `json:"names,omitempty"`
}

// Dependency is a dependency of an installed package.
type Dependency struct {
	// Package is the repository of the dependency, with its registry and without
	// a tag or digest.
	Package string `json:"package"`

	// APIVersion of the dependency.
	// +optional
	APIVersion *string `json:"apiVersion,omitempty"`
	// Kind of the dependency.
	// +optional
	Kind *string `json:"kind,omitempty"`
	// Type of the dependency. New entries have an apiVersion and a kind instead.
	// +optional
	Type *PackageType `json:"type,omitempty"`

	// Constraints is a semantic version constraint or a digest.
	Constraints string `json:"constraints"`
}

// LockList is a list of Locks.
//
// +kubebuilder:object:root=true
type LockList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Lock `json:"items"`
}
