package closure

import (
	"strings"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// LabelMade with the value "true" is on packages that were installed because others
// need them.
const LabelMade = "xpkg.dev/dependency"

// AnnotationFor on such a package names those for whom it was installed.
const AnnotationFor = "xpkg.dev/installed-for"

// IsMade reports whether a package was installed because others need it, and by nobody
// else.
func IsMade(p v1.Package) bool { return p.GetLabels()[LabelMade] == "true" }

// For are the repositories of those for whom a package was installed.
func For(p v1.Package) []string {
	if !IsMade(p) || p.GetAnnotations()[AnnotationFor] == "" {
		return nil
	}
	return strings.Split(p.GetAnnotations()[AnnotationFor], ", ")
}

// Adopt makes a package one that a person wants: it stays when nobody needs it any
// more.
func Adopt(p v1.Package) {
	labels, annotations := p.GetLabels(), p.GetAnnotations()
	delete(labels, LabelMade)
	delete(annotations, AnnotationFor)
	p.SetLabels(labels)
	p.SetAnnotations(annotations)
}
