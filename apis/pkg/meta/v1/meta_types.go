package v1

// MetaSpec holds the metadata fields common to all kinds of package.
type MetaSpec struct {
	// Crossplane constrains the versions of Crossplane that the package works with.
	// +optional
	Crossplane *CrossplaneConstraints `json:"crossplane,omitempty"`
	// DependsOn lists the dependencies of the package.
	// +optional
	DependsOn []Dependency `json:"dependsOn,omitempty"`
	// Capabilities of the package: keywords for its consumers.
	// +optional
	Capabilities []string `json:"capabilities,omitempty"`
}

// CrossplaneConstraints constrains the versions of Crossplane that a package works with.
type CrossplaneConstraints struct {
	// Version is a semantic version constraint, for example ">=v1.14.0".
	Version string `json:"version"`
}

// Dependency is a dependency of a package: either apiVersion, kind and package, or one of
// the older fields provider, configuration and function, or a kind.
type Dependency struct {
	// APIVersion of the dependency.
	// +optional
	APIVersion *string `json:"apiVersion,omitempty"`
	// Kind of the dependency.
	// +optional
	Kind *string `json:"kind,omitempty"`
	// Package is the repository of the dependency, without a tag.
	// +optional
	Package *string `json:"package,omitempty"`

	// Provider is the repository of the dependency, if it is a provider.
	// +optional
	Provider *string `json:"provider,omitempty"`
	// Configuration is the repository of the dependency, if it is a configuration.
	// +optional
	Configuration *string `json:"configuration,omitempty"`
	// Function is the repository of the dependency, if it is a function.
	// +optional
	Function *string `json:"function,omitempty"`

	// Version is a semantic version constraint or a digest. It is required unless CRD is set.
	// +optional
	Version string `json:"version,omitempty"`

	// CRD is a kind of custom resources in the form KIND.GROUP or KIND.GROUP/VERSION, in which KIND can be the plural
	// name of the resource, or * for every kind of the group. Any package that provides it satisfies the dependency.
	// It excludes all other fields.
	// +optional
	CRD *string `json:"crd,omitempty"`
}
