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
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// kinds are those that a backup holds of a world.
func (w world) kinds() []schema.GroupVersionKind {
	out := []schema.GroupVersionKind{
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "Composition"},
	}
	for _, kind := range v1.PackageKinds() {
		out = append(out, v1.GroupVersion.WithKind(kind), v1.GroupVersion.WithKind(v1.RevisionKind(kind)))
	}
	for _, kind := range []string{"Kept", "Dropped", "Added", "Manual", "Labeled", "Unwanted"} {
		out = append(out, schema.GroupVersionKind{Group: w.group, Version: "v1", Kind: kind})
	}
	return out
}

// holds reports whether an object belongs to the world.
func (w world) holds(o client.Object) bool {
	return strings.HasPrefix(o.GetName(), w.name+"-") || strings.HasSuffix(o.GetName(), "."+w.group) ||
		o.GetObjectKind().GroupVersionKind().Group == w.group
}

// backup reads everything of a world.
func (w world) backup(t *testing.T, s *stand) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for _, gvk := range w.kinds() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		err := s.client.List(context.Background(), list)
		if apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			if w.holds(&list.Items[i]) {
				out = append(out, &list.Items[i])
			}
		}
	}
	return out
}

// lose deletes everything, as a cluster that is gone has lost it.
func (w world) lose(t *testing.T, s *stand) {
	t.Helper()
	for _, o := range w.backup(t, s) {
		if err := s.client.Delete(t.Context(), o); client.IgnoreNotFound(err) != nil && !apimeta.IsNoMatchError(err) {
			t.Fatal(err)
		}
	}
	until(t, "everything is lost", func() (string, bool) {
		left := w.backup(t, s)
		return keys(left), len(left) == 0
	})
}

// key names an object.
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

// byKey gives objects by their names.
func byKey(all []*unstructured.Unstructured) map[string]*unstructured.Unstructured {
	out := map[string]*unstructured.Unstructured{}
	for _, o := range all {
		out[key(o)] = o
	}
	return out
}

// stripped is an object as a restore writes it: without status, and without what the
// API server gives. Owners are kept or left out.
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

// restore writes one object. A resource has to wait until its kind is served.
func restore(t *testing.T, s *stand, o *unstructured.Unstructured) {
	t.Helper()
	until(t, key(o)+" is restored", func() (string, bool) {
		fresh := o.DeepCopy()
		err := s.client.Create(t.Context(), fresh)
		if apierrors.IsAlreadyExists(err) {
			// Velero, too, leaves what is there.
			return "", true
		}
		return fmt.Sprint(err), err == nil
	})
}

// velero orders objects as Velero does: definitions first, the rest by kind. Within a
// kind the order is that of a shuffle.
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

// definitionsFirst puts definitions first, without which resources cannot be written.
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

// specs are the parts of objects that a restore must keep, by their names.
func specs(all []*unstructured.Unstructured) map[string]any {
	out := map[string]any{}
	for name, o := range maps.All(byKey(all)) {
		spec, _, _ := unstructured.NestedFieldCopy(o.Object, "spec")
		out[name] = map[string]any{"spec": spec, "labels": o.GetLabels(), "annotations": o.GetAnnotations()}
	}
	return out
}
