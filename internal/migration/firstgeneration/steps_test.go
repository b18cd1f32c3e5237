package firstgeneration

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/xpkg-dev/xpkg/apis"
	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// A manager that runs already may create an object between the read and the write of the migration, which then uses it.
func TestAnObjectThatTheManagerCreatesFirstIsUsed(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	race := interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
		other := o.DeepCopyObject().(client.Object)
		other.SetAnnotations(map[string]string{"example.org/creator": "manager"})
		if err := c.Create(ctx, other); err != nil {
			return err
		}
		return c.Create(ctx, o, options...)
	}}
	m := &Migration{Client: fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(race).Build()}
	in := &install{
		group: packagesv1alpha1.EarlierGroup, kind: "ClusterStackInstall", namespace: "system", name: "boats", provider: "boats",
		object: &unstructured.Unstructured{Object: map[string]any{}}, reference: oci.MustParseReference("registry.example.org/acme/boats:v1.0.0"),
	}
	provider, err := m.ensureProvider(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	object, err := m.ensureInstall(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []client.Object{provider, object} {
		if o.GetName() != "boats" || o.GetAnnotations()["example.org/creator"] != "manager" {
			t.Errorf("%T %s with the annotations %v is not the object of the manager", o, o.GetName(), o.GetAnnotations())
		}
	}
}
