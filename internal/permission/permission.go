// Package permission derives the permissions of a revision's runtime in its cluster from
// the CRDs of the revision, its provider family, and the configuration of the package
// manager. The manager and its plans both use it.
package permission

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Mode is the configuration of permissions of a package manager.
type Mode struct {
	// Namespace of the runtimes.
	Namespace string
	// Namespaced confines them to it, for all namespaced resources.
	Namespaced bool
	// ClusterScoped are the resources that the cluster serves without a namespace. It is
	// used only if Namespaced is set.
	ClusterScoped map[schema.GroupResource]bool
}

// Input returns the input for deriving the permissions of a revision, without its
// ServiceAccounts. Objects are the objects of the package, and all are the revisions of
// its kind in the cluster. It fails with InvalidPermissions.
func Input(
	rev v1.PackageRevision, pkg *xpkg.Package, objects *desired.Objects, all []v1.PackageRevision, mode Mode,
) (rbac.Input, error) {
	needs, err := rbac.ParseNeeds(pkg.Meta.Annotations[rbac.AnnotationPermissions])
	if err != nil {
		return rbac.Input{}, err
	}
	in := rbac.Input{
		Kind: rev.PackageKind(), Package: rev.GetLabels()[v1.LabelPackage], Revision: rev.GetName(),
		Defined: objects.Defined(), Family: Family(rev, pkg.Meta.Labels[v1.LabelProviderFamily], all),
		Requests:  pkg.Meta.PermissionRequests,
		SafeStart: pkg.Meta.HasCapability(xpkg.CapabilitySafeStart), Needs: needs,
		Namespace: mode.Namespace, Namespaced: mode.Namespaced,
	}
	if mode.Namespaced {
		own, err := objects.ClusterScoped()
		if err != nil {
			return rbac.Input{}, err
		}
		in.ClusterScoped = maps.Clone(mode.ClusterScoped)
		maps.Copy(in.ClusterScoped, own)
	}
	return in, nil
}

// Family returns the resources that the other packages of a provider family define, if
// they come from the same registry and organization: any package can declare any family.
// Only active revisions count.
func Family(rev v1.PackageRevision, family string, all []v1.PackageRevision) []schema.GroupResource {
	if family == "" {
		return nil
	}
	var out []schema.GroupResource
	for _, other := range all {
		if Related(rev, family, other) {
			out = append(out, desired.Defined(revision.Objects(other))...)
		}
	}
	return out
}

// Related reports whether a revision shares its types with another one.
func Related(rev v1.PackageRevision, family string, other v1.PackageRevision) bool {
	return family != "" && other.GetLabels()[v1.LabelProviderFamily] == family &&
		other.GetLabels()[v1.LabelPackage] != rev.GetLabels()[v1.LabelPackage] &&
		other.RevisionSpec().DesiredState == v1.RevisionActive && other.GetDeletionTimestamp() == nil &&
		samePublisher(rev.RevisionSpec().Image, other.RevisionSpec().Image)
}

// samePublisher compares the registries and the first parts of the repositories of
// two images.
func samePublisher(a, b string) bool {
	x, errX := publisher(a)
	y, errY := publisher(b)
	return errX == nil && errY == nil && x == y
}

func publisher(image string) (string, error) {
	ref, err := oci.ParseReference(image, oci.ParseOptions{})
	if err != nil {
		return "", err
	}
	organization, _, _ := strings.Cut(ref.Repository, "/")
	return ref.Registry + "/" + organization, nil
}
