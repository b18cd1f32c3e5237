package graph

import (
	"strings"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// LabelAutoInstalled is "true" on packages that were installed as dependencies.
const LabelAutoInstalled = "xpkg.dev/auto-installed"

// AnnotationRequiredBy lists the repositories of the packages for which such a package was installed.
const AnnotationRequiredBy = "xpkg.dev/required-by"

// IsAutoInstalled reports whether a package was installed as a dependency and not by a user.
func IsAutoInstalled(p v1.Package) bool { return p.GetLabels()[LabelAutoInstalled] == "true" }

// RequiredBy returns the repositories of the packages for which p was installed as a dependency.
func RequiredBy(p v1.Package) []string {
	if !IsAutoInstalled(p) || p.GetAnnotations()[AnnotationRequiredBy] == "" {
		return nil
	}
	return strings.Split(p.GetAnnotations()[AnnotationRequiredBy], ", ")
}

// SetRequiredBy records the repositories of the packages for which p is installed. Only the label
// of auto-installed packages makes p a dependency.
func SetRequiredBy(p v1.Package, repositories []string) {
	annotations := p.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[AnnotationRequiredBy] = strings.Join(repositories, ", ")
	p.SetAnnotations(annotations)
}

// IsUnmarkedDependency reports whether the installation of p as a dependency was interrupted before
// p was labelled.
func IsUnmarkedDependency(p v1.Package) bool {
	return !IsAutoInstalled(p) && p.GetAnnotations()[AnnotationRequiredBy] != ""
}

// annotationFollowDependents with the value "true" on a package that a user installed lets the package
// manager change its version in the same way as the versions of dependencies: when the packages that depend on it
// require another version, and the policy allows it.
const annotationFollowDependents = "xpkg.dev/follow-dependents"

// FollowsDependents reports whether the user lets the version of p follow the packages that depend on it.
func FollowsDependents(p v1.Package) bool {
	return p.GetAnnotations()[annotationFollowDependents] == "true"
}

// Adopt marks a package as installed by a user, so that it stays when no package requires it.
func Adopt(p v1.Package) {
	labels, annotations := p.GetLabels(), p.GetAnnotations()
	delete(labels, LabelAutoInstalled)
	delete(annotations, AnnotationRequiredBy)
	p.SetLabels(labels)
	p.SetAnnotations(annotations)
}
