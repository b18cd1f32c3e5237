package revision

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// AnnotationAdopt on a package or on a revision lists the objects of users that the package may adopt, separated by
// commas, as plan.Ref.ObjectName returns them. The content of a package cannot set annotations of
// this domain.
const AnnotationAdopt = "xpkg.dev/adopt"

// Adoptions returns the objects of users that a package may adopt, by the annotations of the package and its revision.
func Adoptions(consents ...metav1.Object) []string {
	var out []string
	for _, o := range consents {
		out = append(
			out, strings.FieldsFunc(o.GetAnnotations()[AnnotationAdopt], func(r rune) bool { return r == ',' || r == ' ' })...,
		)
	}
	return out
}

// FormatAdoptions returns the value of AnnotationAdopt for objects, sorted and without duplicates.
func FormatAdoptions(objects []string) string {
	objects = slices.Clone(objects)
	slices.Sort(objects)
	return strings.Join(slices.Compact(objects), ",")
}

// AllowAdoption adds objects to the list of objects that a package may adopt.
func AllowAdoption(p v1.Package, objects []string) {
	annotations := p.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[AnnotationAdopt] = FormatAdoptions(append(Adoptions(p), objects...))
	p.SetAnnotations(annotations)
}
