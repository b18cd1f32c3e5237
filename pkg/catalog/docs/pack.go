package docs

import (
	"cmp"
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
)

// A Pack is the documentation of one version of a package.
type Pack struct {
	Info         Info
	Readme       string
	ReleaseNotes string
	// Icon is nil if there is none.
	Icon *Icon
	// Kinds are ordered by group and kind.
	Kinds []Kind
	// Compositions are ordered by name.
	Compositions []Composition
	// Examples are resources of the kinds of the package or of others; see [Pack.Kind].
	Examples []Example
}

// Info describes the package.
type Info struct {
	// Type is Provider, Configuration or Function.
	Type     string
	Name     string
	Title    string
	Summary  string
	Category string
	// Annotations are the annotations of the metadata, without the readme and the icon.
	Annotations map[string]string
	// Permissions are the requested permissions, one line for each rule.
	Permissions []string
	// SafeStart reports that the runtime of a Provider works while only some of its kinds are active.
	SafeStart bool
	// Objects are the numbers of objects by kind.
	Objects map[string]int
}

// An Icon is an image.
type Icon struct {
	MediaType string
	Data      []byte
}

// A Kind is a kind with its schemas and examples.
type Kind struct {
	Group, Kind string
	// Role is the part that the kind has in the package.
	Role catalog.Role
	// Composite is the kind of the composite resource of an XRD, also for its claim; empty for other kinds.
	Composite string
	// CRD is the canonical JSON of the CustomResourceDefinition of apiextensions.k8s.io/v1. For the kinds of an XRD it has
	// the schemas of the author, without the fields that the composition engine adds.
	CRD []byte
	// Examples are only those of [Pack.Kind].
	Examples []Example
}

// An Example is a resource.
type Example struct {
	// Name is the file name or the title of the example.
	Name string
	// YAML is the resource as it was written.
	YAML string
}

func compareKinds(a, b Kind) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
}

// sorted returns the kinds in order, without repeated ones.
func sorted(kinds []Kind) []Kind {
	kinds = slices.Clone(kinds)
	slices.SortStableFunc(kinds, compareKinds)
	return slices.CompactFunc(kinds, func(a, b Kind) bool { return compareKinds(a, b) == 0 })
}
