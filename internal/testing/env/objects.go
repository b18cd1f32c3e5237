package env

import (
	"context"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// CreateTemporary creates objects and deletes them when the test ends. A transaction that has not ended is deleted with
// its finalizer: its manager ends with the test, and the next one would carry it out.
func (e *Env) CreateTemporary(t testing.TB, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		e.Create(t, o)
		t.Cleanup(func() {
			e.Delete(t, o)
			if _, isTransaction := o.(*v1alpha1.Transaction); isTransaction {
				patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
				if err := e.Client.Patch(context.WithoutCancel(t.Context()), o, patch); client.IgnoreNotFound(err) != nil {
					t.Errorf("the transaction %s: %v", o.GetName(), err)
				}
			}
		})
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
