package bootstrap_test

import (
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/fence"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
)

// The manifests contain the policies that the manager writes, so the manager does not write them again.
func TestManagerKeepsTheFencesOfTheManifests(t *testing.T) {
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
	var names []string
	for _, o := range fences {
		names = append(names, o.GetName())
	}
	if !slices.Equal(names, []string{
		fence.RuntimesName, fence.RuntimesName, fence.ConsentsName, fence.ConsentsName, fence.TransactionsName,
		fence.TransactionsName, fence.ApprovalsName, fence.ApprovalsName, fence.RemovalsName, fence.RemovalsName,
	}) {
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
	// The manager compares the fence before it reconciles packages.
	p := env.NewPackage(
		v1.FunctionKind, "after-the-fence",
		s.Push(t, "bootstrap/after-the-fence", "v1.0.0", stream("Function", "after-the-fence")),
	)
	s.EnsureCreated(t, p)
	s.WaitReady(t, p)
	for _, o := range fences {
		live := o.DeepCopyObject().(client.Object)
		if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(o), live); err != nil {
			t.Fatal(err)
		}
		if live.GetResourceVersion() != o.GetResourceVersion() {
			t.Errorf("the manager has written %T: %+v", o, live)
		}
	}
}
