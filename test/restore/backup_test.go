package restore_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// kinds returns the kinds in a backup.
func (f fixture) kinds() []schema.GroupVersionKind {
	out := []schema.GroupVersionKind{
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "Composition"},
	}
	for _, kind := range v1.PackageKinds() {
		out = append(out, v1.GroupVersion.WithKind(kind), v1.GroupVersion.WithKind(v1.RevisionKind(kind)))
	}
	for _, kind := range []string{"Kept", "Dropped", "Added", "Manual", "Labeled", "Unwanted"} {
		out = append(out, schema.GroupVersionKind{Group: f.group, Version: "v1", Kind: kind})
	}
	return out
}

// contains reports whether an object belongs to the fixture.
func (f fixture) contains(o client.Object) bool {
	return strings.HasPrefix(o.GetName(), f.name+"-") || strings.HasSuffix(o.GetName(), "."+f.group) ||
		o.GetObjectKind().GroupVersionKind().Group == f.group
}

// backup reads all objects of a fixture.
func (f fixture) backup(t *testing.T, c *cluster) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for _, gvk := range f.kinds() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		err := c.Client.List(context.Background(), list)
		if apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			if f.contains(&list.Items[i]) {
				out = append(out, &list.Items[i])
			}
		}
	}
	return out
}

// lose deletes all objects of a fixture.
func (f fixture) lose(t *testing.T, c *cluster) {
	t.Helper()
	until(t, "all objects are deleted", func() (string, bool) {
		left := f.backup(t, c)
		for _, o := range left {
			patch := `{"metadata":{"annotations":{"` + v1.AnnotationOnDelete + `":"cascade=1000"}}}`
			if o.GetDeletionTimestamp() != nil && o.GroupVersionKind().Group == v1.Group {
				patch = `{"metadata":{"finalizers":null}}` // The manager may have ended.
			}
			_ = c.Client.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch)))
			err := c.Client.Delete(t.Context(), o)
			if client.IgnoreNotFound(err) != nil && !apimeta.IsNoMatchError(err) && !apierrors.IsForbidden(err) {
				t.Fatal(err)
			}
		}
		return keys(left), len(left) == 0
	})
}

// key returns the kind and the name of an object.
func key(o client.Object) string {
	return o.GetObjectKind().GroupVersionKind().Kind + "/" + o.GetName()
}

func keys(all []*unstructured.Unstructured) string {
	var out []string
	for _, o := range all {
		out = append(out, key(o))
	}
	return fmt.Sprint(out)
}

// byKey returns objects by their keys.
func byKey(all []*unstructured.Unstructured) map[string]*unstructured.Unstructured {
	out := map[string]*unstructured.Unstructured{}
	for _, o := range all {
		out[key(o)] = o
	}
	return out
}

// stripped returns an object as a restore writes it: without its status and the metadata that the
// API server sets, with or without owners.
func stripped(o *unstructured.Unstructured, owners bool) *unstructured.Unstructured {
	out := o.DeepCopy()
	unstructured.RemoveNestedField(out.Object, "status")
	drop := []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"}
	if !owners {
		drop = append(drop, "ownerReferences")
	}
	for _, field := range drop {
		unstructured.RemoveNestedField(out.Object, "metadata", field)
	}
	return out
}

// restore creates one object. It retries a custom resource until its kind is served.
func restore(t *testing.T, c *cluster, o *unstructured.Unstructured) {
	t.Helper()
	until(t, key(o)+" is restored", func() (string, bool) {
		fresh := o.DeepCopy()
		err := c.Client.Create(t.Context(), fresh)
		if apierrors.IsAlreadyExists(err) {
			// Like Velero, keep the existing object.
			return "", true
		}
		return fmt.Sprint(err), err == nil
	})
}

// velero sorts objects as Velero does: CRDs first, then by kind. Objects of one kind keep their
// order.
func velero(all []*unstructured.Unstructured) []*unstructured.Unstructured {
	rank := func(o *unstructured.Unstructured) string {
		if o.GetKind() == "CustomResourceDefinition" {
			return ""
		}
		return strings.ToLower(o.GetKind()) + "s." + o.GroupVersionKind().Group
	}
	out := slices.Clone(all)
	slices.SortStableFunc(out, func(a, b *unstructured.Unstructured) int { return strings.Compare(rank(a), rank(b)) })
	return out
}

// definitionsFirst moves CRDs to the front.
func definitionsFirst(all []*unstructured.Unstructured) []*unstructured.Unstructured {
	out := slices.Clone(all)
	slices.SortStableFunc(out, func(a, b *unstructured.Unstructured) int {
		return boolean(b.GetKind() == "CustomResourceDefinition") - boolean(a.GetKind() == "CustomResourceDefinition")
	})
	return out
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// specs returns the parts of objects that a restore must keep, by the keys of the objects.
func specs(all []*unstructured.Unstructured) map[string]any {
	out := map[string]any{}
	for name, o := range maps.All(byKey(all)) {
		spec, _, _ := unstructured.NestedFieldCopy(o.Object, "spec")
		out[name] = map[string]any{"spec": spec, "labels": o.GetLabels(), "annotations": o.GetAnnotations()}
	}
	return out
}
