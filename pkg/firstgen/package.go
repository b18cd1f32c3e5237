package firstgen

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Type is the type of a package.
type Type string

// Types of packages. A package without a type has the type "".
const (
	TypeProvider    Type = "Provider"
	TypeStack       Type = "Stack"
	TypeApplication Type = "Application"
	TypeAddon       Type = "Addon"
)

// Scope is the scope of the permissions that a package needs.
type Scope string

// Scopes of packages. A package without a scope is namespaced, which needs fewer permissions.
const (
	ScopeCluster    Scope = "Cluster"
	ScopeNamespaced Scope = "Namespaced"
)

// A Package is the content of a .registry folder.
type Package struct {
	App App
	// Install is the controller; nil for a package that only contains CRDs.
	Install *Install
	// Behavior is the templating form of the controller; nil unless the package uses it.
	Behavior *Behavior
	// Icons are the icons of the package, preferred format first.
	Icons []Icon
	// UISchema is the UI schema of the package, all documents concatenated.
	UISchema string
	// Resources are the CRDs and their metadata, ordered by group and kind.
	Resources []Resource
	// Findings are warnings. If there are errors, Read returns no Package.
	Findings []xpkg.Finding
}

// App is the content of app.yaml.
type App struct {
	// FormatVersion is the version of the format; "0.1.0" if the file does not state one.
	FormatVersion string
	// Version is the version of the package: the stated one, or the tag of the image.
	Version       string
	Title         string
	OverviewShort string
	Overview      string
	Readme        string
	Category      string
	Company       string
	Website       string
	Source        string
	// License is an SPDX license identifier.
	License     string
	Keywords    []string
	Maintainers []Person
	Owners      []Person
	Links       []Link
	Type        Type
	Scope       Scope
	// DependsOn are the CRDs that the package requires, in the order of the file.
	DependsOn []CRDReference
}

// A Person maintains or owns a package.
type Person struct {
	Name  string `json:"name"`
	Email string `json:"email,omitempty"`
}

// A Link is a link of app.yaml.
type Link struct {
	Description string `json:"description,omitempty"`
	URL         string `json:"url"`
}

// A CRDReference names CRDs of one group and version.
type CRDReference struct {
	// Plural is the plural name of the resource, or "*" for every resource of the group.
	Plural string
	Group  string
	// Version is an API version; empty for any.
	Version string
}

// String returns the reference in the form of app.yaml: plural.group/version.
func (r CRDReference) String() string {
	s := r.Plural + "." + r.Group
	if r.Version != "" {
		s += "/" + r.Version
	}
	return s
}

// Matches reports whether r names a resource, in any of its versions.
func (r CRDReference) Matches(plural, group string, versions ...string) bool {
	return r.Group == group && (r.Plural == "*" || r.Plural == plural) &&
		(r.Version == "" || slices.Contains(versions, r.Version))
}

// ParseCRDReference parses a reference of the form plural.group or plural.group/version, in which the plural can be
// "*". It returns false for any other text.
func ParseCRDReference(s string) (CRDReference, bool) {
	name, version, versioned := strings.Cut(s, "/")
	plural, group, ok := strings.Cut(name, ".")
	r := CRDReference{Plural: plural, Group: group, Version: version}
	valid := ok && isDNSSubdomain(group) && (plural == "*" || isDNSLabel(plural)) && (!versioned || isDNSLabel(version))
	return r, valid
}

// A Resource is a CRD with its metadata.
type Resource struct {
	// CRD is the CRD in apiextensions.k8s.io/v1, with the labels and annotations of the format.
	CRD *apiextensionsv1.CustomResourceDefinition
	// Group and Meta are the metadata that apply to the CRD.
	Group GroupMeta
	Meta  ResourceMeta
	// Icon is nil if no icon applies.
	Icon *Icon
	// UISchema is the UI schema of the kind, all documents concatenated.
	UISchema string
	// File is the path of the CRD in the folder, of its highest version if several files define it.
	File string
	// sources are the documents that define the CRD, highest version first.
	sources []crdSource
}

// GroupMeta is the content of a group.yaml.
type GroupMeta struct {
	Group         string `json:"group,omitempty"`
	Title         string `json:"title,omitempty"`
	OverviewShort string `json:"overviewShort,omitempty"`
	Overview      string `json:"overview,omitempty"`
	Readme        string `json:"readme,omitempty"`
	Category      string `json:"category,omitempty"`
	Description   string `json:"description,omitempty"`
}

// ResourceMeta is the content of a resource.yaml.
type ResourceMeta struct {
	// ID is the kind that the metadata describes.
	ID          string `json:"id,omitempty"`
	Title       string `json:"title,omitempty"`
	TitlePlural string `json:"titlePlural,omitempty"`
	// FormerTitlePlural is the name of TitlePlural before format version 1.0. Read moves it there.
	FormerTitlePlural string `json:"title-plural,omitempty"`
	Category          string `json:"category,omitempty"`
	OverviewShort     string `json:"overviewShort,omitempty"`
	// ShortOverview is the name of OverviewShort in the table of annotations of the document. Read moves it there.
	ShortOverview string `json:"shortOverview,omitempty"`
	Overview      string `json:"overview,omitempty"`
	Readme        string `json:"readme,omitempty"`
	Description   string `json:"description,omitempty"`
}

// OwnedKinds returns the kinds that the package defines, one for each served version, in the order of Resources.
func (p *Package) OwnedKinds() []metav1.TypeMeta {
	var out []metav1.TypeMeta
	for _, r := range p.Resources {
		for _, v := range r.CRD.Spec.Versions {
			if v.Served {
				out = append(out, metav1.TypeMeta{APIVersion: r.CRD.Spec.Group + "/" + v.Name, Kind: r.CRD.Spec.Names.Kind})
			}
		}
	}
	return out
}
