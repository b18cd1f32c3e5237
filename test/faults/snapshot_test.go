package faults_test

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// snapshot contains the objects that exist at one time.
type snapshot struct {
	packages  []v1.Package
	revisions []v1.PackageRevision
	objects   []*unstructured.Unstructured
}

func (v *snapshot) add(o runtime.Object) {
	switch o := o.(type) {
	case v1.Package:
		v.packages = append(v.packages, o)
	case v1.PackageRevision:
		v.revisions = append(v.revisions, o)
	case *unstructured.Unstructured:
		v.objects = append(v.objects, o)
	}
}

// lists returns empty lists of all kinds of object of a package.
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

// readAll reads all objects from the API server.
func readAll(ctx context.Context, c client.Reader) (snapshot, error) {
	var v snapshot
	for _, list := range lists() {
		if err := c.List(ctx, list); err != nil {
			return snapshot{}, err
		}
		err := meta.EachListItem(list, func(o runtime.Object) error {
			v.add(o)
			return nil
		})
		if err != nil {
			return snapshot{}, err
		}
	}
	return v, nil
}
