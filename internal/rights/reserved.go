package rights

import (
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xpkg-dev/xpkg/internal/failure"
)

// ErrReservedDefinition is the failure of a package that defines what is not its own.
var ErrReservedDefinition = failure.Register(failure.Code{
	Name: "ReservedDefinition", Class: failure.Invalid,
	Cause: "The package defines a resource in a group that belongs to Kubernetes or to the package manager.",
	Fix:   "Give the resource a group of your own, and publish the package again.",
})

// packageGroup is the API of packages. Rights on it are rights to install anything.
const packageGroup = "pkg.crossplane.io"

// kubernetesGroups are the groups that API servers serve themselves, beside those
// without a dot in their names. Groups such as gateway.networking.k8s.io are
// others: anybody's definitions.
var kubernetesGroups = []string{
	"admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "authentication.k8s.io",
	"authorization.k8s.io", "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io",
	"flowcontrol.apiserver.k8s.io", "imagepolicy.k8s.io", "internal.apiserver.k8s.io", "metrics.k8s.io",
	"networking.k8s.io", "node.k8s.io", "rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io",
	"storage.k8s.io", "storagemigration.k8s.io",
}

// Reserved reports whether nobody gets rights on a resource by defining it. An API
// server accepts a definition that has the name of one of its own resources, such as
// validatingwebhookconfigurations.admissionregistration.k8s.io, and goes on to
// serve its own. A package with such a definition would get rights on objects that
// were never its own; [Derive] leaves it out, and the package has to request them.
func Reserved(resource schema.GroupResource) bool {
	return !strings.Contains(resource.Group, ".") || resource.Group == packageGroup || slices.Contains(kubernetesGroups, resource.Group)
}

// ReservedGroups are the groups with a dot in their names of which everything is
// reserved, sorted.
func ReservedGroups() []string {
	return slices.Sorted(slices.Values(slices.Concat(kubernetesGroups, []string{packageGroup})))
}

// CheckDefined fails with ReservedDefinition when one of the resources that a package
// defines is reserved.
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
	return ErrReservedDefinition.New(errors.New(list(reserved)), "the package defines resources that are not its own")
}
