package apis

import (
	"k8s.io/apimachinery/pkg/runtime"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	metav1 "github.com/xpkg-dev/xpkg/apis/pkg/meta/v1"
	metav1alpha1 "github.com/xpkg-dev/xpkg/apis/pkg/meta/v1alpha1"
	metav1beta1 "github.com/xpkg-dev/xpkg/apis/pkg/meta/v1beta1"
	pkgv1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	pkgv1alpha1 "github.com/xpkg-dev/xpkg/apis/pkg/v1alpha1"
	pkgv1beta1 "github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	xpkgv1alpha1 "github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
)

// AddToScheme registers all types of xpkg: the types that a cluster serves, and the
// metadata of packages, which no cluster serves.
func AddToScheme(s *runtime.Scheme) error {
	all := runtime.NewSchemeBuilder(
		pkgv1.AddToScheme, pkgv1beta1.AddToScheme, pkgv1alpha1.AddToScheme, packagesv1alpha1.AddToScheme,
		xpkgv1alpha1.AddToScheme,
		metav1.AddToScheme, metav1beta1.AddToScheme, metav1alpha1.AddToScheme,
	)
	return all.AddToScheme(s)
}
