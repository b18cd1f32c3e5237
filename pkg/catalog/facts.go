package catalog

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// annotationTitle is the title of a package in the annotations of the field. Packages of the first generation have
// [xpkg.AnnotationTitle].
const annotationTitle = "friendly-name.meta.crossplane.io"

// Limits of the texts of a row in bytes. Longer texts are shortened.
const (
	maxTitle   = 120
	maxSummary = 300
	maxWord    = 64
	maxWords   = 20
)

// Facts are everything that one version of a package contributes to a catalog.
type Facts struct {
	Repository string
	Version    Version
	// Served are the API versions that the version serves, ordered by group and kind.
	Served []ServedKind
	// Head describes the package; nil if it is not known. Build needs it for the newest version of each package only.
	Head *Head
}

// A ServedKind is a kind with its served API versions, sorted.
type ServedKind struct {
	Group, Kind string
	Versions    []string
}

// A Head is the description of a package by one of its versions.
type Head struct {
	// Package has the texts of the version. Build sets the other fields.
	Package Package
	// Kinds have no Since.
	Kinds []Kind
	// Text is optional.
	Text *Text
	// Retracts are the versions that the version retracts.
	Retracts []Retraction
}

// FactsOf returns the facts of a version. The objects of the package may come from an index with definitions, without
// the objects themselves; the error is the error of reading an object.
func FactsOf(repository, tag string, digest oci.Digest, created time.Time, pkg *xpkg.Package) (_ Facts, err error) {
	repository = oci.RepositoryName(repository)
	f := Facts{Repository: repository, Head: &Head{Package: Describe(repository, pkg.Meta)}}
	f.Version = Version{
		Tag: tag, Digest: digest, Created: fromUnix(toUnix(created)), Crossplane: pkg.Meta.Crossplane,
		Dependencies: dependencies(pkg.Meta),
	}
	for _, o := range pkg.Objects {
		definitions, err := o.Definitions()
		if err != nil {
			return Facts{}, err
		}
		for _, d := range definitions {
			f.Head.Kinds = append(f.Head.Kinds, kindOf(repository, pkg.Meta.Kind, o, d))
		}
	}
	if f.Head.Retracts, err = ParseRetractions(pkg.Meta.Annotations[AnnotationRetract]); err != nil {
		return Facts{}, err
	}
	f.normalize()
	return f, f.check()
}

// Failed returns the facts of a version that cannot be indexed.
func Failed(repository, tag string, digest oci.Digest, created time.Time, reason IndexError) Facts {
	repository = oci.RepositoryName(repository)
	reason.Code, reason.Message = clip(reason.Code, maxWord), clip(reason.Message, maxSummary)
	return Facts{
		Repository: repository,
		Version:    Version{Tag: tag, Digest: digest, Created: fromUnix(toUnix(created)), Error: &reason},
		Head:       &Head{Package: Package{Repository: repository}},
	}
}

// normalize sorts the kinds, drops repeated ones, and derives Served and the number of kinds.
func (f *Facts) normalize() {
	slices.SortStableFunc(f.Head.Kinds, compareKinds)
	f.Head.Kinds = slices.CompactFunc(f.Head.Kinds, func(a, b Kind) bool { return compareKinds(a, b) == 0 })
	f.Served = servedBy(f.Head.Kinds)
	f.Version.Kinds = len(f.Head.Kinds)
}

func servedBy(kinds []Kind) []ServedKind {
	var out []ServedKind
	for _, k := range kinds {
		if len(k.Served) > 0 {
			out = append(out, ServedKind{k.Group, k.Kind, slices.Sorted(slices.Values(k.Served))})
		}
	}
	slices.SortStableFunc(out, func(a, b ServedKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
	})
	return slices.CompactFunc(out, func(a, b ServedKind) bool { return a.Group == b.Group && a.Kind == b.Kind })
}

// sameFacts reports whether two facts about one tag state the same, as far as both are known.
func sameFacts(a, b *Facts) bool {
	if a.Head != nil && b.Head != nil && !reflect.DeepEqual(a.Head, b.Head) {
		return false
	}
	return reflect.DeepEqual(a.Version, b.Version) && reflect.DeepEqual(a.Served, b.Served)
}

// Describe returns the row of a package with the texts of its metadata.
func Describe(repository string, m xpkg.Meta) Package {
	a := m.Annotations
	p := Package{
		Repository: repository, Type: string(m.Kind),
		Title:    clip(cmp.Or(a[annotationTitle], a[xpkg.AnnotationTitle]), maxTitle),
		Summary:  clip(m.Presentation().Summary, maxSummary),
		Category: clip(a[xpkg.AnnotationCategory], maxWord), License: clip(a[xpkg.AnnotationLicense], maxWord),
		Website: clip(a[xpkg.AnnotationWebsite], maxSummary), SourceURL: clip(a[xpkg.AnnotationSource], maxSummary),
		Publisher: clip(a[xpkg.AnnotationMaintainer], maxTitle),
	}
	for w := range strings.SplitSeq(a[xpkg.AnnotationKeywords], ",") {
		if w = clip(w, maxWord); w != "" {
			p.Keywords = append(p.Keywords, w)
		}
	}
	slices.Sort(p.Keywords)
	p.Keywords = slices.Compact(p.Keywords)
	p.Keywords = p.Keywords[:min(len(p.Keywords), maxWords)]
	return p
}

// dependencies returns the dependencies of the metadata with normalized names, ordered by name.
func dependencies(m xpkg.Meta) []dependency.Dependency {
	var out []dependency.Dependency
	for _, d := range m.DependsOn {
		out = append(out, d.On(oci.RepositoryName(d.Package)))
	}
	for _, d := range m.Optional {
		d = d.On(oci.RepositoryName(d.Package))
		d.Optional = true
		out = append(out, d)
	}
	slices.SortFunc(out, compareDependencies)
	return slices.Compact(out)
}

func compareDependencies(a, b dependency.Dependency) int {
	return cmp.Or(
		cmp.Compare(a.Package, b.Package), cmp.Compare(a.Constraint, b.Constraint), compareBool(a.Optional, b.Optional),
	)
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func kindOf(repository string, in xpkg.Kind, o xpkg.Object, d xpkg.Definition) Kind {
	k := Kind{
		Kind: d.Kind, Group: d.Group, Plural: d.Plural, Singular: d.Singular, ShortNames: slices.Clone(d.ShortNames),
		Scope: d.Scope,
		Role:  RoleOf(in, o, d), Repository: repository,
	}
	slices.Sort(k.ShortNames)
	k.ShortNames = slices.Compact(k.ShortNames)
	for _, v := range d.Versions {
		if v.Served && !slices.Contains(k.Served, v.Name) {
			k.Served = append(k.Served, v.Name)
		}
	}
	slices.SortFunc(k.Served, compareAPIVersions)
	return k
}

// RoleOf returns the role of a kind that an object of a package defines.
func RoleOf(in xpkg.Kind, o xpkg.Object, d xpkg.Definition) Role {
	switch {
	case in == xpkg.Function:
		return Input
	case d.Claim:
		return Claim
	case o.GVK.Kind == "CompositeResourceDefinition":
		return Composite
	}
	return Provides
}
