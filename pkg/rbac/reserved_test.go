package rbac

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// reservedGroups is a second copy of the lists on purpose: a group that is lost from them
// could be taken by a package.
var reservedGroups = []string{
	"admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "authentication.k8s.io",
	"authorization.k8s.io", "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io",
	"flowcontrol.apiserver.k8s.io", "imagepolicy.k8s.io", "internal.apiserver.k8s.io", "lifecycle.k8s.io",
	"metrics.k8s.io",
	"networking.k8s.io", "node.k8s.io", "rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io",
	"storage.k8s.io", "storagemigration.k8s.io",
	"apiextensions.crossplane.io", "cache.crossplane.io", "compute.crossplane.io", "core.crossplane.io", "crossplane.io",
	"database.crossplane.io", "meta.pkg.crossplane.io", "meta.pkg.ibm.crossplane.io", "ops.crossplane.io",
	"packages.crossplane.io", "pkg.crossplane.io", "pkg.ibm.crossplane.io", "protection.crossplane.io",
	"secrets.crossplane.io", "stacks.crossplane.io", "storage.crossplane.io", "workload.crossplane.io",
	"meta.pkg.xpkg.dev", "meta.xpkg.dev", "pkg.xpkg.dev", "xpkg.dev",
}

// hardening: E8
func TestNoPackageDefinesAResourceInAReservedGroup(t *testing.T) {
	for _, group := range reservedGroups {
		t.Run(group, func(t *testing.T) {
			err := CheckDefined([]schema.GroupResource{{Group: "example.org", Resource: "things"}, {
				Group: group, Resource: "things",
			}})
			if !errors.Is(err, ErrReservedDefinition) {
				t.Errorf("got the error %v", err)
			}
			if err := CheckDefined([]schema.GroupResource{{Group: "example." + group, Resource: "things"}}); err != nil {
				t.Errorf("a subgroup: %v", err)
			}
		})
	}
	want := slices.Sorted(slices.Values(reservedGroups))
	if diff := cmp.Diff(want, ReservedGroups()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestGroupsOfProvidersAreNotReserved(t *testing.T) {
	for _, group := range []string{
		"kubernetes.crossplane.io", "kubernetes.m.crossplane.io", "helm.crossplane.io", "nop.crossplane.io",
		"gcp.crossplane.io",
		"database.gcp.crossplane.io", "template.crossplane.io", "gcp.secrets.crossplane.io", "storage.gcp.crossplane.io",
		"hello.xpkg.dev", "gateway.networking.k8s.io", "s3.aws.upbound.io",
	} {
		if err := CheckDefined([]schema.GroupResource{{Group: group, Resource: "things"}}); err != nil {
			t.Errorf("%s: %v", group, err)
		}
	}
}
