package revision

import (
	"strings"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

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

// InstallsDependencies reports whether the manager installs and moves the packages that a package requires. It does not for a Provider
// that it created for PackageInstalls and that was never healthy: the users of a namespace install nothing else for the whole cluster.
func InstallsDependencies(p v1.Package) bool {
	a := p.PackageStatus().Activation
	return p.PackageKind() != v1.ProviderKind || p.GetAnnotations()[AnnotationCreatedForNamespaces] != "true" || a != nil && a.Healthy
}

// ErrSharedWebhook is the code for a package with a webhook that no runtime would serve.
var ErrSharedWebhook = errcode.Code{
	Name: "SharedWebhook", Class: errcode.Invalid,
	Cause: "A package has a conversion webhook or a webhook configuration, and would share its CRDs with namespaces. Such a Provider has no runtime that serves the webhook: the API server could not convert custom resources, or would accept them without their validation and defaults.",
	Fix:   "Install the package for the whole cluster, with a ClusterPackageInstall or with a Provider that does not share its CRDs.",
}

// CheckShared fails with SharedWebhook for a package that shares its CRDs with namespaces and whose content has a webhook.
func CheckShared(p v1.Package, pkg *xpkg.Package) error {
	if !IsShared(p) {
		return nil
	}
	var served []string
	for _, o := range pkg.Objects {
		if o.CallsRuntime() {
			served = append(served, o.GVK.Kind+" "+o.Name)
		}
	}
	if len(served) == 0 {
		return nil
	}
	return ErrSharedWebhook.New(nil, "%s has a webhook in %s, and a Provider that shares its CRDs with namespaces has no runtime that serves it",
		p.PackageSpec().Package, strings.Join(served, ", ")).
		WithDo("Install the package for the whole cluster: with a ClusterPackageInstall, or with a Provider without the annotation %s.", AnnotationNamespacedInstalls)
}
