package tocore

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/xpkg-dev/xpkg/apis"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/migration"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// The active kinds of Providers with the capability safe-start are in a policy before core manages them, and names that
// are in it stay. Nothing is left to do then.
func TestActiveKindsAreKept(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	policy := &unstructured.Unstructured{}
	policy.SetGroupVersionKind(state.PolicyGVK)
	policy.SetName(keptKinds)
	policy.Object["spec"] = map[string]any{"activate": []any{"zs.before.test"}}
	m := &mover{Options{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(policy).Build()}}
	revision := func(state v1.RevisionState, capability, crd string) v1.PackageRevision {
		rev := &v1.ProviderRevision{}
		rev.Spec.DesiredState, rev.Status.Capabilities = state, []string{capability}
		rev.Status.ObjectRefs = []v1.TypedReference{
			{APIVersion: "apiextensions.k8s.io/v1", Kind: plan.DefinitionKind, Name: crd, UID: "1"},
		}
		return rev
	}
	s := &snapshot{families: []family{{migration.Package{Package: v1.NewPackage(v1.ProviderKind), Revisions: []v1.PackageRevision{
		revision(v1.RevisionActive, "SafeStart", "as.active.test"), revision(v1.RevisionInactive, "SafeStart", "bs.former.test"),
		revision(v1.RevisionActive, "", "cs.all.test"),
	}}}}}
	steps, err := m.kindsSteps(t.Context(), s)
	if err != nil || len(steps) != 1 {
		t.Fatalf("%d steps (%v)", len(steps), err)
	}
	if err := steps[0].Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := m.Client.Get(t.Context(), client.ObjectKey{Name: keptKinds}, policy); err != nil {
		t.Fatal(err)
	}
	if got := state.PolicyOf(policy).Patterns; !slices.Equal(got, []string{"as.active.test", "zs.before.test"}) {
		t.Errorf("the policy activates %v", got)
	}
	if steps, err = m.kindsSteps(t.Context(), s); err != nil || len(steps) > 0 {
		t.Errorf("%d steps are left (%v)", len(steps), err)
	}
}
