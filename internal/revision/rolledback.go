package revision

import (
	"slices"
	"strings"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// AnnotationRolledBackFrom on a package lists the references from which `xpkg rollback` returned it to a former
// revision, separated by commas. `xpkg update --all` and `xpkg rollback` do not select their versions. An update to a
// version removes its reference.
const AnnotationRolledBackFrom = "xpkg.dev/rolled-back-from"

// RolledBackFrom returns the references from which a package was rolled back.
func RolledBackFrom(p v1.Package) []string {
	return strings.FieldsFunc(
		p.GetAnnotations()[AnnotationRolledBackFrom], func(r rune) bool { return r == ',' || r == ' ' },
	)
}

// WasRolledBackFrom reports whether a package was rolled back from the version of a reference.
func WasRolledBackFrom(p v1.Package, image string) bool {
	return slices.ContainsFunc(RolledBackFrom(p), func(from string) bool { return oci.SameVersion(from, image) })
}

// RecordVersion records a change from a reference to the one in the spec of a package. A rollback adds the reference
// that it leaves. A change to a recorded reference removes it, because the user has selected the version again; a
// rollback to it withdraws the former rollback, and adds none.
func RecordVersion(p v1.Package, from string, rollsBack bool) {
	to := p.PackageSpec().Package
	withdraws := WasRolledBackFrom(p, to)
	all := slices.DeleteFunc(RolledBackFrom(p), func(left string) bool { return oci.SameVersion(left, to) })
	if rollsBack && !withdraws {
		all = append(all, from)
	}
	slices.Sort(all)
	setAnnotation(p, AnnotationRolledBackFrom, strings.Join(slices.Compact(all), ","))
}
