package v1

// MetaSpec holds the metadata fields common to all kinds of package.
type MetaSpec struct {
	// Crossplane constrains the versions of Crossplane that the package works with.
	// +optional
	Crossplane *CrossplaneConstraints `json:"crossplane,omitempty"`
	// DependsOn are the packages that this package needs.
	// +optional
	DependsOn []Dependency `json:"dependsOn,omitempty"`
	// Capabilities of the package: keywords for its consumers,
	// it.
	// +optional
	Capabilities []string `json:"capabilities,omitempty"`
}

// CrossplaneConstraints constrains the versions of Crossplane that a package works with.
type CrossplaneConstraints struct {
	// Version is a semantic version constraint, for example ">=v1.14.0".
	Version string `json:"version"`
}

// Dependency is a package that another one needs: either apiVersion, kind and
// package, or one of the older provider, configuration and function.
type Dependency struct {
	// APIVersion of the package that is needed.
	// +optional
	APIVersion *string `json:"apiVersion,omitempty"`
	// Kind of the package that is needed.
	// +optional
	Kind *string `json:"kind,omitempty"`
	// Package is the repository of the package that is needed, without a tag.
	// +optional
	Package *string `json:"package,omitempty"`

	// Provider is the repository of a provider that is needed.
	// +optional
	Provider *string `json:"provider,omitempty"`
	// Configuration is the repository of a configuration that is needed.
	// +optional
	Configuration *string `json:"configuration,omitempty"`
	// Function is the repository of a function that is needed.
	// +optional
	Function *string `json:"function,omitempty"`

	// Version is a semantic version constraint or a digest.
	Version string `json:"version"`
}
