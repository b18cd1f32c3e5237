package xpkg

import (
	"cmp"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/wording"
)

// Annotations of the metadata that describe a package to users, in addition to the ones of the specification.
const (
	// AnnotationTitle is the name of the package for people.
	AnnotationTitle = "meta.xpkg.dev/title"
	// AnnotationSummary is one line of plain text.
	AnnotationSummary = "meta.xpkg.dev/summary"
	// AnnotationCategory is a category of the package, such as Database.
	AnnotationCategory = "meta.xpkg.dev/category"
	// AnnotationCompany is the company that publishes the package.
	AnnotationCompany = "meta.xpkg.dev/company"
	// AnnotationKeywords is a list of words, separated by commas.
	AnnotationKeywords = "meta.xpkg.dev/keywords"
	// AnnotationWebsite is the URL of the website of the package.
	AnnotationWebsite = "meta.xpkg.dev/website"
	// AnnotationOwners is a list of names with mail addresses, separated by commas, as in the maintainer annotation.
	AnnotationOwners = "meta.xpkg.dev/owners"
	// AnnotationVersion is the version that the author wrote into the package.
	AnnotationVersion = "meta.xpkg.dev/version"
	// AnnotationIcon is a data URI.
	AnnotationIcon = "meta.xpkg.dev/icon-data-uri"
	// AnnotationUISchema is a UI schema of the package, in YAML.
	AnnotationUISchema = "meta.xpkg.dev/ui-schema"
	// AnnotationFirstGeneration is the format version of a package that was converted from the first generation of
	// the format.
	AnnotationFirstGeneration = "meta.xpkg.dev/first-generation"
	// AnnotationPackageType is the type of such a package: Provider, Stack, Application or Addon.
	AnnotationPackageType = "meta.xpkg.dev/package-type"
	// AnnotationPermissionScope is the scope of the permissions of such a package: Cluster or Namespaced.
	AnnotationPermissionScope = "meta.xpkg.dev/first-generation-scope"
	// AnnotationTemplating is the templating controller of such a package, in JSON. Install objects run it.
	AnnotationTemplating = "meta.xpkg.dev/templating-controller"
)

// maxSummary is the maximum size in bytes of a summary that is taken from a description.
const maxSummary = 300

// Presentation describes a package to users. Every field can be empty, and all text is untrusted.
type Presentation struct {
	Title string `json:"title,omitempty"`
	// Summary is the text of the author, or else the first sentence of the description.
	Summary     string   `json:"summary,omitempty"`
	Description string   `json:"description,omitempty"`
	Readme      string   `json:"readme,omitempty"`
	Category    string   `json:"category,omitempty"`
	Company     string   `json:"company,omitempty"`
	Keywords    []string `json:"keywords,omitempty"`
	Website     string   `json:"website,omitempty"`
	Source      string   `json:"source,omitempty"`
	License     string   `json:"license,omitempty"`
	Maintainers string   `json:"maintainers,omitempty"`
	Owners      string   `json:"owners,omitempty"`
	Version     string   `json:"version,omitempty"`
	Icon        string   `json:"icon,omitempty"`
	UISchema    string   `json:"uiSchema,omitempty"`
	PackageType string   `json:"packageType,omitempty"`
}

// Presentation returns the description of the package in its annotations.
func (m Meta) Presentation() Presentation {
	a := m.Annotations
	p := Presentation{
		Title: a[AnnotationTitle], Description: a[AnnotationDescription], Readme: a[AnnotationReadme],
		Category: a[AnnotationCategory], Company: a[AnnotationCompany], Website: a[AnnotationWebsite],
		Source:  a[AnnotationSource],
		License: a[AnnotationLicense], Maintainers: a[AnnotationMaintainer], Owners: a[AnnotationOwners],
		Version: a[AnnotationVersion], Icon: a[AnnotationIcon], UISchema: a[AnnotationUISchema],
		PackageType: a[AnnotationPackageType],
	}
	p.Summary = cmp.Or(a[AnnotationSummary], wording.FirstSentence(p.Description, maxSummary))
	for word := range strings.SplitSeq(a[AnnotationKeywords], ",") {
		if word = strings.TrimSpace(word); word != "" {
			p.Keywords = append(p.Keywords, word)
		}
	}
	return p
}
