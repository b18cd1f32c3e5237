package check

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/yamldoc"
)

// maxAnnotationBytes is the maximum size of all annotations of an object: the limit of the API server, which cannot be
// raised, without the annotations that the package manager adds.
const maxAnnotationBytes = apivalidation.TotalAnnotationSizeLimitB - 1<<10

// Codes for annotations.
var (
	ErrMissingAnnotation = errcode.Code{
		Name: "MissingAnnotation", Class: errcode.Invalid,
		Cause: "The metadata has no annotations that describe the package.",
		Fix:   "Add the annotations to the metadata object; in a Project, set spec.maintainer, spec.source, spec.license, spec.description and spec.readme.",
	}
	ErrInvalidLicense = errcode.Code{
		Name: "InvalidLicense", Class: errcode.Invalid,
		Cause: "The license annotation is not an SPDX license identifier or expression.",
		Fix:   "Use an identifier of https://spdx.org/licenses/, such as Apache-2.0, or your own, which must start with LicenseRef-.",
	}
	ErrInvalidSource = errcode.Code{
		Name: "InvalidSource", Class: errcode.Invalid,
		Cause: "The source annotation is not the URL of the package's source.",
		Fix:   "Use a URL such as https://github.com/example/provider-example.",
	}
	ErrAnnotationsTooLarge = errcode.Code{
		Name: "AnnotationsTooLarge", Class: errcode.Invalid,
		Cause: "The annotations of an object exceed the 256 KiB that an API server accepts, of which the package manager needs 1 KiB.",
		Fix:   "Shorten or remove annotations.",
	}
	ErrMetaAnnotationsTooLarge = errcode.Code{
		Name: "MetaAnnotationsTooLarge", Class: errcode.Invalid,
		Cause: "The annotations of the metadata exceed the 256 KiB that an API server accepts on a package revision, of which the package manager needs 1 KiB.",
		Fix:   "Shorten the annotations, for example the readme or the icon.",
	}
	ErrInvalidMetaLabels = errcode.Code{
		Name: "InvalidMetaLabels", Class: errcode.Invalid,
		Cause: "The metadata of the package has a label, or the key of an annotation, that an API server rejects on a package revision.",
		Fix:   "Correct the named label or annotation.",
	}
)

// checkMetaAnnotations checks the annotations of the specification.
func (c *checker) checkMetaAnnotations() {
	m := &c.pkg.Meta
	for _, key := range xpkg.ReservedKeys(m.Annotations) {
		if key == catalog.AnnotationRetract {
			continue // Only authors set it.
		}
		c.metaFinding(xpkg.ErrReservedKey, annotationPath(key), "only users set the annotation %.300q; it is ignored", key)
	}
	if _, err := catalog.ParseRetractions(m.Annotations[catalog.AnnotationRetract]); err != nil {
		c.metaFinding(catalog.ErrInvalidStatus, annotationPath(catalog.AnnotationRetract), "%s", err)
	}
	var missing []string
	for _, key := range []string{
		xpkg.AnnotationMaintainer, xpkg.AnnotationSource, xpkg.AnnotationLicense, xpkg.AnnotationDescription,
		xpkg.AnnotationReadme,
	} {
		if strings.TrimSpace(m.Annotations[key]) == "" {
			missing = append(missing, key)
		}
	}
	if len(missing) > 0 {
		c.metaFinding(ErrMissingAnnotation, "metadata.annotations", "no %s", strings.Join(missing, ", "))
	}
	if text := m.Annotations[xpkg.AnnotationLicense]; text != "" {
		if why := licenseFault(text); why != "" {
			c.metaFinding(
				ErrInvalidLicense, annotationPath(xpkg.AnnotationLicense), "%s is %.80q: %s", xpkg.AnnotationLicense, text, why,
			)
		}
	}
	if text := m.Annotations[xpkg.AnnotationSource]; text != "" && !isURL(text) {
		c.metaFinding(
			ErrInvalidSource, annotationPath(xpkg.AnnotationSource), "%s is %.80q, which is not a URL", xpkg.AnnotationSource,
			text,
		)
	}
	for _, p := range Labels(m.Labels, m.Annotations) {
		c.metaFinding(ErrInvalidMetaLabels, p.Path, "%s: %s", yamldoc.Printable(p.Path), p.Message)
	}
	if problem := Annotations(m.Annotations); problem != "" {
		c.metaFinding(ErrMetaAnnotationsTooLarge, "metadata.annotations", "%s", problem)
	}
}

func annotationPath(key string) string { return "metadata.annotations[" + key + "]" }

// isURL reports whether text is a URL, with or without a scheme.
func isURL(text string) bool {
	text = strings.TrimSpace(text)
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	return err == nil && strings.Contains(u.Host, ".") && !strings.ContainsAny(u.Host, " \t\n")
}

// Labels returns the problems of labels and of the keys of annotations for which an API server rejects an object.
func Labels(labels, annotations map[string]string) []Problem {
	var out []Problem
	add := func(path string, messages []string) {
		for _, m := range messages {
			out = append(out, Problem{Path: path, Message: m})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		add("metadata.labels["+key+"]", append(validation.IsQualifiedName(key), validation.IsValidLabelValue(labels[key])...))
	}
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		add(annotationPath(key), validation.IsQualifiedName(strings.ToLower(key)))
	}
	return out
}

// Annotations returns the message for annotations that exceed the size limit of an API server, and "" for
// others.
func Annotations(annotations map[string]string) string {
	size := 0
	for key, value := range annotations {
		size += len(key) + len(value)
	}
	if size <= maxAnnotationBytes {
		return ""
	}
	return fmt.Sprintf("the annotations have %d bytes, at most %d are allowed", size, maxAnnotationBytes)
}
