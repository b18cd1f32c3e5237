package v1alpha1

import v1 "github.com/xpkg-dev/xpkg/apis/pkg/meta/v1"

// MetaSpec holds the metadata fields common to all kinds of package.
type MetaSpec struct {
	// Crossplane constrains the versions of Crossplane that the package works with.
	// +optional
	Crossplane *CrossplaneConstraints `json:"crossplane,omitempty"`
	// DependsOn lists the dependencies of the package.
	// +optional
	DependsOn []v1.Dependency `json:"dependsOn,omitempty"`
	// Capabilities of the package.
	// +optional
	Capabilities []string `json:"capabilities,omitempty"`
}

// CrossplaneConstraints constrains the versions of Crossplane that a package works with.
// It is decoded from an object or a plain string, and encoded as an object.
type CrossplaneConstraints struct {
	// Version is a semantic version constraint.
	Version string `json:"version"`
}
