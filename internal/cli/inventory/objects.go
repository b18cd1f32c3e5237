package inventory

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Get reads a package of the cluster. It returns nil if the package does not exist.
func Get(ctx context.Context, cluster client.Client, kind, name string) (v1.Package, error) {
	p := v1.NewPackage(kind)
	gvk := p.GetObjectKind().GroupVersionKind()
	err := cluster.Get(ctx, client.ObjectKey{Name: name}, p)
	if apierrors.IsNotFound(err) && !connection.IsNotServed(err) {
		return nil, nil
	}
	if err != nil {
		return nil, connection.Classify(err, "read %s/%s", strings.ToLower(kind), name)
	}
	p.GetObjectKind().SetGroupVersionKind(gvk)
	return p, nil
}

// List returns a v1 List of packages and of the install objects beside them, the form in which kubectl prints several objects.
func List(packages []v1.Package, installs ...packagesv1alpha1.Install) any {
	items := make([]any, 0, len(packages)+len(installs))
	for _, p := range packages {
		items = append(items, WithoutManagedFields(p))
	}
	for _, in := range installs {
		in.SetManagedFields(nil)
		items = append(items, in)
	}
	return map[string]any{"apiVersion": "v1", "kind": "List", "items": items}
}

// WithoutManagedFields returns a package without managed fields.
func WithoutManagedFields(p v1.Package) v1.Package {
	p.SetManagedFields(nil)
	return p
}

// ShortName returns the kind and the name of a package, such as provider/x.
func ShortName(p v1.Package) string { return strings.ToLower(p.PackageKind()) + "/" + p.GetName() }

// ResourceNames returns the names of packages in the form of kubectl, such as
// provider.pkg.crossplane.io/x.
func ResourceNames(packages []v1.Package) []string {
	out := make([]string, len(packages))
	for i, p := range packages {
		out[i] = strings.ToLower(p.PackageKind()) + "." + v1.Group + "/" + p.GetName()
	}
	return out
}

// RepositoryOf returns the repository that a package is installed from.
func RepositoryOf(p v1.Package) string {
	ref, err := oci.ParseReference(p.PackageSpec().Package, oci.ParseOptions{})
	if err != nil {
		return p.PackageSpec().Package
	}
	return ref.Name()
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
