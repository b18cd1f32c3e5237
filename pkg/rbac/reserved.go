package rbac

import (
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrReservedDefinition is the code for a package that defines a resource in a reserved group.
var ErrReservedDefinition = errcode.Code{
	Name: "ReservedDefinition", Class: errcode.Invalid,
	Cause: "The package defines a resource in a group that belongs to Kubernetes, to Crossplane or to the package manager.",
	Fix:   "Use your own group for the resource, such as example.crossplane.io or example.org, and publish the package again. Nothing was written.",
}

// kubernetesGroups are the built-in groups of API servers, in addition to the groups without a
// dot. Other groups of the community, such as gateway.networking.k8s.io, are defined by CRDs,
// which a package can contain.
var kubernetesGroups = []string{
	"admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "authentication.k8s.io",
	"authorization.k8s.io", "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io",
	"flowcontrol.apiserver.k8s.io", "imagepolicy.k8s.io", "internal.apiserver.k8s.io", "lifecycle.k8s.io",
	"metrics.k8s.io",
	"networking.k8s.io", "node.k8s.io", "rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io",
	"storage.k8s.io", "storagemigration.k8s.io",
}

// crossplaneGroups are the groups of Crossplane itself, now or in former releases. A package
// that owns the CRD of Composition deletes every Composition when it is uninstalled. The list
// is exact: providers define their resources in groups such as helm.crossplane.io and
// database.gcp.crossplane.io. It does not contain kubernetes.crossplane.io, which belongs to
// provider-kubernetes.
var crossplaneGroups = []string{
	"apiextensions.crossplane.io", "cache.crossplane.io", "compute.crossplane.io", "core.crossplane.io", "crossplane.io",
	"database.crossplane.io", "meta.pkg.crossplane.io", "meta.pkg.ibm.crossplane.io", "ops.crossplane.io",
	"packages.crossplane.io",
	"pkg.crossplane.io", "pkg.ibm.crossplane.io", "protection.crossplane.io", "secrets.crossplane.io",
	"stacks.crossplane.io",
	"storage.crossplane.io", "workload.crossplane.io",
}

// managerGroups are the groups of xpkg.
var managerGroups = []string{"meta.pkg.xpkg.dev", "meta.xpkg.dev", "pkg.xpkg.dev", "xpkg.dev"}

// Reserved reports whether a resource belongs to Kubernetes, to Crossplane or to the package
// manager. A package must not define it, and [Derive] grants no permissions for it. An API
// server accepts a CRD with the name of a built-in resource, such as
// validatingwebhookconfigurations.admissionregistration.k8s.io, but continues to serve the
// built-in resource, so that permissions would apply to it.
func Reserved(resource schema.GroupResource) bool {
	g := resource.Group
	return isKubernetesGroup(g) || slices.Contains(crossplaneGroups, g) || slices.Contains(managerGroups, g)
}

// isKubernetesGroup reports whether a group is built into API servers.
func isKubernetesGroup(group string) bool {
	return !strings.Contains(group, ".") || slices.Contains(kubernetesGroups, group)
}

// ReservedGroups returns the reserved groups with a dot in their names, sorted.
func ReservedGroups() []string {
	return slices.Sorted(slices.Values(slices.Concat(kubernetesGroups, crossplaneGroups, managerGroups)))
}

// CheckDefined returns an error with the code ReservedDefinition if any of the resources that
// a package defines is reserved. The error names all of them.
func CheckDefined(defined []schema.GroupResource) error {
	var reserved []string
	for _, r := range defined {
		if Reserved(r) {
			reserved = append(reserved, r.String())
		}
	}
	if len(reserved) == 0 {
		return nil
	}
	return ErrReservedDefinition.New(
		errors.New(list(reserved)), "the package defines resources that belong to Kubernetes, Crossplane or xpkg",
	)
}
