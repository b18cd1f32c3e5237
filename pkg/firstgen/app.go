package firstgen

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/xpkg-dev/xpkg/internal/lazyregexp"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// defaultFormatVersion is the format version of a package whose app.yaml does not state one.
const defaultFormatVersion = "0.1.0"

var formatVersion = lazyregexp.New(`^(0\.1(\.0)?|1\.[0-9]+(\.[0-9]+)?)$`)

// appDocument is app.yaml as it is written. The fields description and links were written by early tools.
type appDocument struct {
	APIVersion      string   `json:"apiVersion"`
	Version         string   `json:"version"`
	Title           string   `json:"title"`
	OverviewShort   string   `json:"overviewShort"`
	Overview        string   `json:"overview"`
	Description     string   `json:"description"`
	Readme          string   `json:"readme"`
	Maintainers     []Person `json:"maintainers"`
	Owners          []Person `json:"owners"`
	Company         string   `json:"company"`
	Category        string   `json:"category"`
	Keywords        []string `json:"keywords"`
	Website         string   `json:"website"`
	Source          string   `json:"source"`
	Links           []Link   `json:"links"`
	License         string   `json:"license"`
	PackageType     Type     `json:"packageType"`
	PermissionScope Scope    `json:"permissionScope"`
	DependsOn       []struct {
		CRD string `json:"crd"`
	} `json:"dependsOn"`
}

// readApp reads app.yaml.
func (r *reader) readApp(f file) App {
	var d appDocument
	doc, ok := r.document(f, ErrInvalidApp)
	if !ok || !r.decodeDocument(doc, ErrInvalidApp, &d) {
		return App{}
	}
	line := lines(doc)
	invalid := func(field, value, want string) {
		name, _, _ := strings.Cut(field, "[")
		r.report(xpkg.Error, ErrInvalidApp, f.path, line(field), "%s is %.100q, want %s", name, value, want)
	}
	app := App{
		FormatVersion: d.APIVersion, Version: d.Version, Title: d.Title, OverviewShort: strings.TrimSpace(d.OverviewShort),
		Overview: d.Overview, Readme: d.Readme, Category: d.Category, Company: d.Company, Website: d.Website,
		Source: d.Source, License: d.License, Keywords: d.Keywords, Maintainers: d.Maintainers, Owners: d.Owners,
		Links: d.Links, Type: d.PackageType, Scope: d.PermissionScope,
	}
	if app.FormatVersion == "" {
		app.FormatVersion = defaultFormatVersion
	}
	if !formatVersion().MatchString(app.FormatVersion) {
		invalid("apiVersion", app.FormatVersion, "0.1.0 or 1.x")
	}
	if app.Overview == "" {
		app.Overview = d.Description
	}
	if app.Scope == "" {
		app.Scope = ScopeNamespaced
	}
	if app.Scope != ScopeCluster && app.Scope != ScopeNamespaced {
		invalid("permissionScope", string(app.Scope), "Cluster or Namespaced")
	}
	if types := []Type{"", TypeProvider, TypeStack, TypeApplication, TypeAddon}; !slices.Contains(types, app.Type) {
		invalid("packageType", string(app.Type), "Provider, Stack, Application or Addon")
	}
	switch err := CheckTag(app.Version, r.opts.Tag); {
	case app.Version != "" && !oci.ValidTag(app.Version):
		invalid("version", app.Version, "the tag of an image: at most 128 letters, digits, dots, hyphens and underscores")
	case err != nil:
		r.report(xpkg.Error, ErrVersionMismatch, f.path, line("version"), "%s", err)
	}
	app.Version = cmp.Or(app.Version, r.opts.Tag)
	for i, dep := range d.DependsOn {
		ref, ok := ParseCRDReference(dep.CRD)
		if _, err := dependency.ParseKindRef(dep.CRD); !ok || err != nil {
			invalid("dependsOn["+strconv.Itoa(i)+
				"].crd", dep.CRD, "PLURAL.GROUP/VERSION of a CRD, where PLURAL can be * and GROUP contains a dot")
			continue
		}
		app.DependsOn = append(app.DependsOn, ref)
	}
	return app
}

// CheckTag returns an error with the code VersionMismatch if a package states a version and its image has another tag.
// Either can be empty.
func CheckTag(version, tag string) error {
	if version == "" || tag == "" || version == tag {
		return nil
	}
	return ErrVersionMismatch.New(nil, "version is %.100q, and the image has the tag %.100q", version, tag).
		WithDo(
			"Use the tag %.100s, or remove the version from app.yaml, or from the annotation %s of a converted package.",
			version, xpkg.AnnotationVersion,
		)
}

// CheckConvertedTag is CheckTag for the metadata of a package that was converted from a package of the first
// generation, and returns nil for any other package.
func CheckConvertedTag(meta xpkg.Meta, tag string) error {
	if meta.Annotations[xpkg.AnnotationFirstGeneration] == "" {
		return nil
	}
	return CheckTag(meta.Annotations[xpkg.AnnotationVersion], tag)
}

// lines returns a function that returns the line of a field of a document. It parses the document on the first call.
func lines(d xpkg.Document) func(path string) int {
	src := sync.OnceValue(func() *source { return sourceOf(d) })
	return func(path string) int { return src().line(path) }
}

func isDNSLabel(s string) bool     { return len(validation.IsDNS1123Label(s)) == 0 }
func isDNSSubdomain(s string) bool { return len(validation.IsDNS1123Subdomain(s)) == 0 }
