package state

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
)

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
