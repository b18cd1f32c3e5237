package web

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiversion "k8s.io/apimachinery/pkg/version"
)

// sorted returns the versions of the CRD in the order of Kubernetes: v2, v1, v1beta1.
func (d *definition) sorted() []*apiextensionsv1.CustomResourceDefinitionVersion {
	out := make([]*apiextensionsv1.CustomResourceDefinitionVersion, 0, len(d.crd.Spec.Versions))
	for i := range d.crd.Spec.Versions {
		out = append(out, &d.crd.Spec.Versions[i])
	}
	slices.SortStableFunc(out, func(a, b *apiextensionsv1.CustomResourceDefinitionVersion) int {
		return -apiversion.CompareKubeAwareVersionStrings(a.Name, b.Name)
	})
	return out
}
