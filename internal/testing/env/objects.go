package env

import (
	"context"
	"fmt"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// Push builds a package, pushes it to the registry of the environment, and returns its reference.
func (e *Env) Push(t testing.TB, repository, tag, packageYAML string) string {
	t.Helper()
	return publish.Stream(t, e.Registry, repository, tag, []byte(packageYAML)).String()
}

// Create creates objects.
func (e *Env) Create(t testing.TB, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := e.Client.Create(t.Context(), o); err != nil {
			t.Fatalf("%T %s: %v", o, o.GetName(), err)
		}
	}
}

// CreateTemporary creates objects and deletes them when the test ends.
func (e *Env) CreateTemporary(t testing.TB, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		e.Create(t, o)
		t.Cleanup(func() { e.cleanUp(t, o) })
	}
}

// definitions are the kinds of objects that the manager deletes with their package.
var definitions = []schema.GroupVersionKind{
	{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinitionList"},
	{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "CompositeResourceDefinitionList"},
	{Group: "apiextensions.crossplane.io", Version: "v1alpha1", Kind: "ManagedResourceDefinitionList"},
}

// CleanUp deletes objects whose manager may have ended: with their finalizers, and packages with their definitions. It
// can be used in cleanup functions.
func (e *Env) CleanUp(t testing.TB, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		e.cleanUp(t, o)
	}
}

func (e *Env) cleanUp(t testing.TB, o client.Object) {
	t.Helper()
	_, isPackage := o.(v1.Package)
	if _, isTransaction := o.(*v1alpha1.Transaction); !isPackage && !isTransaction {
		e.Delete(t, o)
		return
	}
	ctx := context.WithoutCancel(t.Context())
	patch := func(text string) error {
		return e.Client.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(text)))
	}
	if patch(`{"metadata":{"annotations":{"`+v1.AnnotationOnDelete+`":"cascade=1000000"}}}`) != nil {
		return // It does not exist.
	}
	e.Delete(t, o)
	_ = patch(`{"metadata":{"finalizers":null}}`)
	for _, kind := range definitions {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		if !isPackage || e.Client.List(ctx, list) != nil {
			continue
		}
		for i := range list.Items {
			owners := list.Items[i].OwnerReferences
			if len(owners) > 0 && !slices.ContainsFunc(owners, func(r metav1.OwnerReference) bool { return r.UID != o.GetUID() }) {
				d := &list.Items[i]
				answer := `{"metadata":{"annotations":{"` + v1.AnnotationOnDelete + `":"cascade"}}}`
				_ = e.Client.Patch(ctx, d, client.RawPatch(types.MergePatchType, []byte(answer)))
				e.Delete(t, d)
			}
		}
	}
}

// EnsureCreated creates the objects that do not exist yet.
func (e *Env) EnsureCreated(t testing.TB, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := e.Client.Create(t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatalf("%T %s: %v", o, o.GetName(), err)
		}
	}
}

// Delete deletes objects that exist. It can be used in cleanup functions.
func (e *Env) Delete(t testing.TB, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := e.Client.Delete(context.WithoutCancel(t.Context()), o); client.IgnoreNotFound(err) != nil {
			t.Errorf("%T %s: %v", o, o.GetName(), err)
		}
	}
}

// Update reads, changes and writes an object, and retries on conflicts.
func Update[O client.Object](t testing.TB, e *Env, o O, change func(O)) {
	t.Helper()
	wait.Until(t, Limit, o.GetName()+" is changed", func() (string, bool) {
		if err := e.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err.Error(), false
		}
		change(o)
		err := e.Client.Update(t.Context(), o)
		return fmt.Sprint(err), err == nil
	})
}

// WaitGone waits until an object does not exist, or its kind is not served.
func (e *Env) WaitGone(t testing.TB, o client.Object) {
	t.Helper()
	wait.Until(t, Limit, o.GetName()+" is deleted", func() (string, bool) {
		err := e.Client.Get(context.WithoutCancel(t.Context()), client.ObjectKeyFromObject(o), o)
		if err == nil {
			return fmt.Sprintf("%+v", o), false
		}
		return err.Error(), apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err)
	})
}
