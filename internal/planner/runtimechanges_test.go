package planner_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
)

// The plan of an update that changes only the runtime configuration names the changed fields of both objects.
func TestPlanNamesTheChangedFieldsOfTheRuntimeConfiguration(t *testing.T) {
	e, s := env.New(t), newFakeContent()
	const ref = "registry.example.com/runtimefields/p:v1"
	s.put(ref, provider("p", "", crd("runtimefields.preview.test", "Thing", "one")))
	stop := runManager(t, e.Config, s).Stop
	pl := newPlanner(t, e.Config, s)
	p := env.NewProvider("runtime-fields", ref)
	e.CreateTemporary(t, p)
	settled(t, e.Client, p)
	stop()
	large := &v1beta1.DeploymentRuntimeConfig{ObjectMeta: metav1.ObjectMeta{Name: "runtime-fields"}}
	large.Spec.ServiceAccountTemplate = &v1beta1.ServiceAccountTemplate{Metadata: &v1beta1.ObjectMeta{
		Labels: map[string]string{"team": "a"},
	}}
	e.CreateTemporary(t, large)
	planned := install(t, pl, with(p, func(p v1.Package) {
		p.RuntimeSpec().RuntimeConfigRef = &v1.RuntimeConfigReference{
			Name: large.Name,
		}
	}))
	if diff := cmp.Diff(
		[]planner.SpecChange{{Field: "runtimeConfigRef.name", Was: "default", Is: large.Name}}, planned.FieldChanges,
	); diff != "" {
		t.Errorf("fields of the package (-want +got):\n%s", diff)
	}
	want := []planner.SpecChange{{
		Field: "serviceAccountTemplate", Was: "absent", Is: `{"metadata":{"labels":{"team":"a"}}}`,
	}}
	if diff := cmp.Diff(want, planned.RuntimeChanges); diff != "" {
		t.Errorf("fields of the runtime configuration (-want +got):\n%s", diff)
	}
}
