package revision

import (
	"strings"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/runtimedefaults"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// AnnotationNamespacedInstalls on a Provider, with the value AllowInstalls, shares its CRDs with namespaces:
// PackageInstalls run the controller of the package in their namespaces, and the Provider has no runtime of its own.
const (
	AnnotationNamespacedInstalls = "xpkg.dev/namespaced-installs"
	AllowInstalls                = "Allow"
)

// AnnotationCreatedForNamespaces on a Provider, with the value "true", records that the manager created it for
// PackageInstalls. The manager deletes it if it was never installed and no PackageInstall uses it.
const AnnotationCreatedForNamespaces = "xpkg.dev/created-for-namespaces"

// IsShared reports whether a package shares its CRDs with namespaces.
func IsShared(p v1.Package) bool {
	return p.PackageKind() == v1.ProviderKind && p.GetAnnotations()[AnnotationNamespacedInstalls] == AllowInstalls
}

// InstallsDependencies reports whether the manager installs and moves the packages that a package requires. It does not
// for a Provider that it created for PackageInstalls and that was never healthy: the users of a namespace install
// nothing else for the whole cluster.
func InstallsDependencies(p v1.Package) bool {
	a := p.PackageStatus().Activation
	return p.PackageKind() != v1.ProviderKind || p.GetAnnotations()[AnnotationCreatedForNamespaces] != "true" ||
		a != nil && a.Healthy
}

// ErrSharedWebhook is the code for a package with a webhook that no runtime would serve.
var ErrSharedWebhook = errcode.Code{
	Name: "SharedWebhook", Class: errcode.Invalid,
	Cause: "A package has a conversion webhook or a webhook configuration, and would share its CRDs with namespaces. Such a Provider has no runtime that serves the webhook: the API server could not convert custom resources, or would accept them without their validation and defaults.",
	Fix:   "Install the package for the whole cluster, with a ClusterPackageInstall or with a Provider that does not share its CRDs.",
}

// CheckShared fails with SharedWebhook for a package that shares its CRDs with namespaces and whose content has a
// webhook.
func CheckShared(p v1.Package, pkg *xpkg.Package) error {
	if !IsShared(p) {
		return nil
	}
	served := objectsOf(pkg, xpkg.Object.CallsRuntime)
	if len(served) == 0 {
		return nil
	}
	return ErrSharedWebhook.New(nil,
		"%s has a webhook in %s, and a Provider that shares its CRDs with namespaces has no runtime that serves it",
		p.PackageSpec().Package, strings.Join(served, ", ")).
		WithDo(
			"Install the package for the whole cluster: with a ClusterPackageInstall, or with a Provider without the annotation %s.",
			AnnotationNamespacedInstalls,
		)
}

// ErrConversionWithoutRuntime is the code for a package with a conversion webhook and without a runtime.
var ErrConversionWithoutRuntime = errcode.Code{
	Name: "ConversionWithoutRuntime", Class: errcode.Invalid,
	Cause: "A CRD of a package has a conversion webhook, and the content of the package has no runtime that serves it: the API server could not read or write custom resources in another version than the stored one.",
	Fix:   "Add the controller to the package, in install.yaml for a package of the first generation, or set the conversion strategy of the CRD to None.",
}

// checkConversions fails with ConversionWithoutRuntime for a package that declares that it has no runtime and has a
// conversion webhook. Its webhook configurations are left out, which denies no request.
func checkConversions(p v1.Package, pkg *xpkg.Package) error {
	defaults, err := runtimedefaults.Parse(pkg.Meta.Annotations)
	if err != nil || defaults == nil || !defaults.None {
		return nil //nolint:nilerr // The runtime reports invalid defaults.
	}
	converted := objectsOf(pkg, func(o xpkg.Object) bool { return o.CallsRuntime() && !o.IsWebhookConfiguration() })
	if len(converted) == 0 {
		return nil
	}
	return ErrConversionWithoutRuntime.New(
		nil, "%s has a conversion webhook in %s, and no runtime that serves it", p.PackageSpec().Package,
		strings.Join(converted, ", "),
	)
}

// objectsOf returns the objects of a package that satisfy a predicate, as KIND NAME.
func objectsOf(pkg *xpkg.Package, satisfies func(xpkg.Object) bool) []string {
	var out []string
	for _, o := range pkg.Objects {
		if satisfies(o) {
			out = append(out, o.GVK.Kind+" "+o.Name)
		}
	}
	return out
}
