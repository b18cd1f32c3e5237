package faults_test

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// view is what there is at one time.
type view struct {
	packages  []v1.Package
	revisions []v1.PackageRevision
	objects   []*unstructured.Unstructured
}

func (v *view) add(o runtime.Object) {
	switch o := o.(type) {
	case v1.Package:
		v.packages = append(v.packages, o)
	case v1.PackageRevision:
		v.revisions = append(v.revisions, o)
	case *unstructured.Unstructured:
		v.objects = append(v.objects, o)
	}
}

// lists are of all that packages are made of.
func lists() []client.ObjectList {
	var all []client.ObjectList
	for _, kind := range []string{v1.ProviderKind, v1.ConfigurationKind} {
		all = append(all, v1.NewPackageList(kind), v1.NewPackage(kind).NewRevisionList())
	}
	for kind, apiVersion := range apiVersions {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(apiVersion)
		list.SetKind(kind + "List")
		all = append(all, list)
	}
	return all
}

// look asks the API server for all that there is.
func look(ctx context.Context, c client.Reader) (view, error) {
	var v view
	for _, list := range lists() {
		if err := c.List(ctx, list); err != nil {
			return view{}, err
		}
		err := meta.EachListItem(list, func(o runtime.Object) error {
			v.add(o)
			return nil
		})
		if err != nil {
			return view{}, err
		}
	}
	return v, nil
}
