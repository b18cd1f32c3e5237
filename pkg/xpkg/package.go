package xpkg

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
)

// Kind is the kind of a package.
type Kind string

// Kinds of packages.
const (
	Provider      Kind = "Provider"
	Configuration Kind = "Configuration"
	Function      Kind = "Function"
)

// A Package is the content of a package.yaml.
type Package struct {
	// Meta is the metadata object.
	Meta Meta
	// Objects are all other objects, in the order of the stream.
	Objects []Object
	// Findings are warnings. If there are errors, no Package is returned.
	Findings []Finding
}

// NamesOf returns the names of the objects of a kind, in the order of the stream.
func (p *Package) NamesOf(kind string) []string {
	var out []string
	for _, o := range p.Objects {
		if o.GVK.Kind == kind {
			out = append(out, o.Name)
		}
	}
	return out
}

// Meta is the metadata object of a package, in any version.
type Meta struct {
	// APIVersion is the API version of the document.
	APIVersion string
	Kind       Kind
	Name       string
	// Labels and Annotations are propagated to the package revision (xpkg
	// specification, Object Annotations).
	Labels      map[string]string
	Annotations map[string]string
	// Crossplane is the constraint for the version of Crossplane; empty if there is none.
	// It is always valid.
	Crossplane string
	// DependsOn are the dependencies in the order in which they were written.
	DependsOn []dependency.Dependency
	// Kinds are the kinds that the package requires without naming a package, in the order in which they were written:
	// the entries of spec.dependsOn with the field crd.
	Kinds []dependency.KindRef
	// Optional are the optional dependencies in the order in which they were written; see
	// [AnnotationOptional].
	Optional []dependency.Dependency
	// Capabilities are the capabilities as written; a Function without any has
	// "composition". Use HasCapability for comparisons.
	Capabilities []string
	// ControllerImage is the image of a provider's controller, if it is separate from the
	// package image (Package Format v2); empty otherwise.
	ControllerImage string
	// PermissionRequests are the permissions that a provider's controller requests.
	PermissionRequests []rbacv1.PolicyRule
	// Raw is the document itself.
	Raw Document
}

// Dependencies returns the required dependencies on packages, followed by the optional ones.
func (m Meta) Dependencies() []dependency.Dependency { return slices.Concat(m.DependsOn, m.Optional) }
