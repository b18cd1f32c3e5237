package revision

import (
	"slices"
	"strings"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/desired"
)

// AnnotationRolledBackFrom on a package lists the references from which `xpkg rollback` returned it to a former revision, separated by
// commas. `xpkg update --all` does not select their versions.
const AnnotationRolledBackFrom = "xpkg.dev/rolled-back-from"

// RolledBackFrom returns the references from which a package was rolled back.
func RolledBackFrom(p v1.Package) []string {
	return strings.FieldsFunc(p.GetAnnotations()[AnnotationRolledBackFrom], func(r rune) bool { return r == ',' || r == ' ' })
}

// RecordRollback adds a reference to those from which a package was rolled back.
func RecordRollback(p v1.Package, from string) {
	all := append(RolledBackFrom(p), from)
	slices.Sort(all)
	p.SetAnnotations(desired.Overlay(p.GetAnnotations(), map[string]string{AnnotationRolledBackFrom: strings.Join(slices.Compact(all), ",")}))
}
