package firstgen

import (
	"cmp"

	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
)

// The labels and annotations of CRDs.
const (
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// ManagedBy is the value of LabelManagedBy.
	ManagedBy = "package-manager"

	annotationPrefix = "packages.crossplane.io/"

	AnnotationPackageTitle          = annotationPrefix + "package-title"
	AnnotationGroupTitle            = annotationPrefix + "group-title"
	AnnotationGroupOverview         = annotationPrefix + "group-overview"
	AnnotationGroupOverviewShort    = annotationPrefix + "group-overview-short"
	AnnotationGroupReadme           = annotationPrefix + "group-readme"
	AnnotationResourceCategory      = annotationPrefix + "resource-category"
	AnnotationResourceTitle         = annotationPrefix + "resource-title"
	AnnotationResourceTitlePlural   = annotationPrefix + "resource-title-plural"
	AnnotationResourceOverview      = annotationPrefix + "resource-overview"
	AnnotationResourceOverviewShort = annotationPrefix + "resource-overview-short"
	AnnotationResourceReadme        = annotationPrefix + "resource-readme"
	AnnotationUISchema              = annotationPrefix + "ui-schema"
	AnnotationIcon                  = annotationPrefix + "icon-data-uri"
)

// annotate writes the metadata of a resource into the labels and annotations of its CRD. Metadata files take
// precedence over annotations that the CRD already has; all other labels and annotations are kept.
func annotate(r *Resource, title string) {
	crd := r.CRD
	if crd.Labels == nil {
		crd.Labels = map[string]string{}
	}
	crd.Labels[LabelManagedBy] = ManagedBy
	if crd.Annotations == nil {
		crd.Annotations = map[string]string{}
	}
	set := func(key, value string) {
		if value != "" {
			crd.Annotations[key] = value
		}
	}
	set(AnnotationPackageTitle, title)
	set(AnnotationGroupTitle, r.Group.Title)
	set(AnnotationGroupOverview, cmp.Or(r.Group.Overview, r.Group.Description))
	set(AnnotationGroupOverviewShort, r.Group.OverviewShort)
	set(AnnotationGroupReadme, r.Group.Readme)
	set(AnnotationResourceCategory, cmp.Or(r.Meta.Category, r.Group.Category))
	set(AnnotationResourceTitle, r.Meta.Title)
	set(AnnotationResourceTitlePlural, r.Meta.TitlePlural)
	set(AnnotationResourceOverview, cmp.Or(r.Meta.Overview, r.Meta.Description))
	set(AnnotationResourceOverviewShort, r.Meta.OverviewShort)
	set(AnnotationResourceReadme, r.Meta.Readme)
	set(AnnotationUISchema, r.UISchema)
	if r.Icon != nil {
		set(AnnotationIcon, r.Icon.DataURI())
	}
}

// checkAnnotations reports annotations that the API server would reject.
func (r *reader) checkAnnotations(res *Resource) {
	if problem := check.Annotations(res.CRD.Annotations); problem != "" {
		r.report(
			xpkg.Error, check.ErrAnnotationsTooLarge, res.File, res.sources[0].doc.Line, "CRD %s with its metadata: %s",
			res.CRD.Name, problem,
		)
	}
}
