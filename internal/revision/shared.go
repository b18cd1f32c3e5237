package revision

import v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"

// AnnotationNamespacedInstalls on a Provider, with the value AllowInstalls, shares its CRDs with namespaces: PackageInstalls
// run the controller of the package in their namespaces, and the Provider has no runtime of its own.
const (
	AnnotationNamespacedInstalls = "xpkg.dev/namespaced-installs"
	AllowInstalls                = "Allow"
)

// AnnotationCreatedForNamespaces on a Provider, with the value "true", records that the manager created it for PackageInstalls. The
// manager deletes it if it was never installed and no PackageInstall uses it.
const AnnotationCreatedForNamespaces = "xpkg.dev/created-for-namespaces"

// IsShared reports whether a package shares its CRDs with namespaces.
func IsShared(p v1.Package) bool {
	return p.PackageKind() == v1.ProviderKind && p.GetAnnotations()[AnnotationNamespacedInstalls] == AllowInstalls
}
