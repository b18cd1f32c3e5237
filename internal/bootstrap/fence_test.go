package bootstrap_test

import (
	"fmt"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/fence"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// The manifests contain the policy for runtimes that the manager writes: the manager takes it over without a change.
func TestManagerKeepsTheFenceOfTheManifests(t *testing.T) {
	s := newEnv(t)
	s.install(t, options().Grants())
	all, err := bootstrap.Manifests(options())
	if err != nil {
		t.Fatal(err)
	}
	var fences []client.Object
	for _, o := range all {
		switch o := o.(type) {
		case *admissionv1.ValidatingAdmissionPolicy:
			fences = append(fences, o)
		case *admissionv1.ValidatingAdmissionPolicyBinding:
			fences = append(fences, o)
		}
	}
	if len(fences) != 2 || fences[0].GetName() != fence.RuntimesName || fences[1].GetName() != fence.RuntimesName {
		t.Fatalf("the manifests have the policies %v", fences)
	}
	for _, o := range fences {
		former := o.DeepCopyObject().(client.Object)
		if err := client.IgnoreNotFound(s.Client.Delete(t.Context(), former)); err != nil {
			t.Fatal(err)
		}
		if err := s.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	s.run(t)
	for _, o := range fences {
		wait.Until(t, env.Limit, "the manager has written "+o.GetName(), func() (string, bool) {
			err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o)
			return fmt.Sprint(err), slices.ContainsFunc(o.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
				return f.Manager == plan.FieldManager && f.Operation == metav1.ManagedFieldsOperationApply
			})
		})
		if o.GetGeneration() != 1 {
			t.Errorf("the manager has changed %T: %+v", o, o)
		}
	}
}
