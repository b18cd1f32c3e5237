package revision

import (
	"slices"
	"strings"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// AnnotationAdopt on a package lists the objects of users that the package may adopt, separated by
// commas, as plan.Ref.ObjectName returns them. The content of a package cannot set annotations of
// this domain.
const AnnotationAdopt = "xpkg.dev/adopt"

// Adoptions returns the objects of users that a package may adopt.
func Adoptions(p v1.Package) []string {
	return strings.FieldsFunc(p.GetAnnotations()[AnnotationAdopt], func(r rune) bool { return r == ',' || r == ' ' })
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
