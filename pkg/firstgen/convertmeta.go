package firstgen

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// maxMetaAnnotations is the size up to which annotations of the metadata are written. Package managers copy them to
// the revision, whose annotations are limited to 256 KiB.
const maxMetaAnnotations = 160 << 10

// annotations returns the metadata for people as annotations. If they are too large together, the largest are omitted
// and reported.
func (c *Conversion) annotations(p *Package) map[string]string {
	a := p.App
	out := map[string]string{
		xpkg.AnnotationFirstGeneration: a.FormatVersion,
		xpkg.AnnotationTitle:           a.Title,
		xpkg.AnnotationSummary:         a.OverviewShort,
		xpkg.AnnotationDescription:     cmp.Or(a.Overview, a.OverviewShort),
		xpkg.AnnotationReadme:          a.Readme,
		xpkg.AnnotationCategory:        a.Category,
		xpkg.AnnotationCompany:         a.Company,
		xpkg.AnnotationKeywords:        strings.Join(a.Keywords, ","),
		xpkg.AnnotationWebsite:         cmp.Or(a.Website, a.link("website")),
		xpkg.AnnotationSource:          cmp.Or(a.Source, a.link("source")),
		xpkg.AnnotationLicense:         a.License,
		xpkg.AnnotationMaintainer:      people(a.Maintainers),
		xpkg.AnnotationOwners:          people(a.Owners),
		xpkg.AnnotationVersion:         a.Version,
		xpkg.AnnotationPackageType:     string(a.Type),
		xpkg.AnnotationPermissionScope: string(a.Scope),
		xpkg.AnnotationUISchema:        p.UISchema,
	}
	if len(p.Icons) > 0 {
		out[xpkg.AnnotationIcon] = p.Icons[0].DataURI()
	}
	maps.DeleteFunc(out, func(_, value string) bool { return strings.TrimSpace(value) == "" })
	c.limitAnnotations(out)
	return out
}

// limitAnnotations deletes the largest annotations until the rest is small enough.
func (c *Conversion) limitAnnotations(all map[string]string) {
	size := 0
	for key, value := range all {
		size += len(key) + len(value)
	}
	largest := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(all[b]), len(all[a])), cmp.Compare(a, b))
	})
	for _, key := range largest {
		if size <= maxMetaAnnotations {
			return
		}
		c.lose(
			ReasonAnnotation, appFile, key, "the annotation has %d bytes, and all together at most %d are written",
			len(all[key]), maxMetaAnnotations,
		)
		size -= len(key) + len(all[key])
		delete(all, key)
	}
}

// link returns the first link whose description contains a word.
func (a App) link(word string) string {
	for _, l := range a.Links {
		if strings.Contains(strings.ToLower(l.Description), word) {
			return l.URL
		}
	}
	return ""
}

// people returns names with mail addresses, separated by commas.
func people(all []Person) string {
	out := make([]string, 0, len(all))
	for _, p := range all {
		text := strings.TrimSpace(p.Name)
		if p.Email != "" {
			text = strings.TrimSpace(text + " <" + p.Email + ">")
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}
