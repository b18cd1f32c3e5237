package inventory

import (
	"context"
	"path"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/frontend"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Get reads a package of the cluster. It returns nil if the package does not exist.
func Get(ctx context.Context, cluster client.Client, kind, name string) (v1.Package, error) {
	p := v1.NewPackage(kind)
	gvk := p.GetObjectKind().GroupVersionKind()
	err := cluster.Get(ctx, client.ObjectKey{Name: name}, p)
	if apierrors.IsNotFound(err) && !apiserver.IsNotServed(err) {
		return nil, nil
	}
	if err != nil {
		return nil, apiserver.Classify(err, "read %s/%s", strings.ToLower(kind), name)
	}
	p.GetObjectKind().SetGroupVersionKind(gvk)
	return p, nil
}

// An Object is a package, or a [frontend.Object].
type Object = frontend.Resource

// List returns a v1 List of objects, the form in which kubectl prints several objects.
func List[T Object](all []T) any {
	items := make([]any, 0, len(all))
	for _, o := range all {
		o.SetManagedFields(nil)
		items = append(items, o)
	}
	return map[string]any{"apiVersion": "v1", "kind": "List", "items": items}
}

// WithoutManagedFields returns a package without managed fields.
func WithoutManagedFields(p v1.Package) v1.Package {
	p.SetManagedFields(nil)
	return p
}

// ShortName returns the kind and the name of an object, such as provider/x, with the namespace between them if it has
// one, such as packageinstall/team/x.
func ShortName(o Object) string {
	return path.Join(strings.ToLower(o.PackageKind()), o.GetNamespace(), o.GetName())
}

// ResourceNames returns the names of objects in the form of kubectl, without their namespaces, such as
// provider.pkg.crossplane.io/x.
func ResourceNames[T Object](all []T) []string {
	out := make([]string, len(all))
	for i, o := range all {
		group := v1.Group
		if _, ok := Object(o).(v1.Package); !ok {
			group = o.GetObjectKind().GroupVersionKind().Group
		}
		out[i] = strings.ToLower(o.PackageKind()) + "." + group + "/" + o.GetName()
	}
	return out
}

// RepositoryOf returns the repository that a package is installed from.
func RepositoryOf(p v1.Package) string { return oci.RepositoryName(p.PackageSpec().Package) }

// SpecOf returns the spec of a package of any kind. A Configuration has no runtime fields.
func SpecOf(p v1.Package) v1.ProviderSpec {
	out := v1.ProviderSpec{PackageSpec: *p.PackageSpec().DeepCopy()}
	if r := p.RuntimeSpec(); r != nil {
		out.PackageRuntimeSpec = *r.DeepCopy()
	}
	return out
}

// InstalledReference returns the reference of a package with the digest of its content, as far as it is known, and
// false for a name in the package cache. [oci.Reference.Satisfies] reports whether the package is what a reference
// requests.
func InstalledReference(p v1.Package) (oci.Reference, bool) {
	ref, err := oci.ParseReference(p.PackageSpec().Package, oci.ParseOptions{})
	if err != nil {
		return oci.Reference{}, false
	}
	return ref.WithDigest(graph.CurrentDigest(p)), true
}

// ShortVersion returns the tag of a reference, or the start of its digest if there is no tag.
func ShortVersion(s string) string {
	ref, err := oci.ParseReference(s, oci.ParseOptions{})
	switch {
	case err != nil:
		return s
	case ref.Tag != "":
		return ref.Tag
	}
	return ref.Digest.Short()
}
