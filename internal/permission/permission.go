// Package permission tells what the program of a revision may do in its cluster: the
// rights that follow from what the revision defines, from its family, and from how
// the package manager is set up. The manager and its previews both ask here.
package permission

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/desired"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/oci"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/rights"
)

// Mode is how a package manager gives rights.
type Mode struct {
	// Namespace is where the programs of packages run.
	Namespace string
	// Namespaced confines them to it, for everything that lies in a namespace.
	Namespaced bool
	// ClusterScoped are the resources that the cluster serves without a namespace. It
	// is needed only when Namespaced is set.
	ClusterScoped map[schema.GroupResource]bool
}

// Input gives what the rights of a revision follow from, but for whom its program
// runs as. Objects are those of the package, and all are the revisions of its kind in
// the cluster. The failure is InvalidPermissions.
func Input(rev v1.PackageRevision, pkg *format.Package, objects *desired.Objects, all []v1.PackageRevision, mode Mode) (rights.Input, error) {
	needs, err := rights.ParseNeeds(pkg.Meta.Annotations[rights.AnnotationPermissions])
	if err != nil {
		return rights.Input{}, err
	}
	in := rights.Input{
		Kind: rev.PackageKind(), Package: rev.GetLabels()[v1.LabelPackage], Revision: rev.GetName(),
		Defined: objects.Defined(), Family: Family(rev, pkg.Meta.Labels[v1.LabelProviderFamily], all), Requests: pkg.Meta.PermissionRequests,
		SafeStart: pkg.Meta.HasCapability(format.CapabilitySafeStart), Needs: needs,
		Namespace: mode.Namespace, Namespaced: mode.Namespaced,
	}
	if mode.Namespaced {
		own, err := objects.ClusterScoped()
		if err != nil {
			return rights.Input{}, err
		}
		in.ClusterScoped = maps.Clone(mode.ClusterScoped)
		maps.Copy(in.ClusterScoped, own)
	}
	return in, nil
}

// Family are the resources that the other packages of a family have defined, as far
// as they come from the same registry and organization: anybody can write the name
// of a family on a package. Only what is active counts.
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
