package state

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
)

// AnnotationInstalledBy on a Provider, or on its runtime configuration, names the install object that maintains it, as
// KIND/NAMESPACE/NAME. A user hands over a Provider by setting it.
const AnnotationInstalledBy = "xpkg.dev/installed-by"

// InstalledBy returns the value of AnnotationInstalledBy for an install object.
func InstalledBy(in packagesv1alpha1.Install) string {
	return in.PackageKind() + "/" + in.GetNamespace() + "/" + in.GetName()
}

// ListInstalls returns the install objects of a kind, and none for another kind.
func ListInstalls(ctx context.Context, reader client.Reader, kind string, opts ...client.ListOption) ([]packagesv1alpha1.Install, error) {
	var out []packagesv1alpha1.Install
	switch kind {
	case packagesv1alpha1.ClusterPackageInstallKind:
		list := &packagesv1alpha1.ClusterPackageInstallList{}
		if err := reader.List(ctx, list, opts...); err != nil {
			return nil, fmt.Errorf("list ClusterPackageInstalls: %w", err)
		}
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	case packagesv1alpha1.PackageInstallKind:
		list := &packagesv1alpha1.PackageInstallList{}
		if err := reader.List(ctx, list, opts...); err != nil {
			return nil, fmt.Errorf("list PackageInstalls: %w", err)
		}
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	}
	return out, nil
}
