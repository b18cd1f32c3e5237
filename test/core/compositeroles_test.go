package core

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/migration/tocore"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// rolesOf returns the roles of an XRD with the plural xs, as Crossplane's RBAC manager writes them.
func rolesOf(xrd *unstructured.Unstructured, group string) []rbacv1.ClusterRole {
	out := rbac.DeriveComposite(rbac.Composite{Name: xrd.GetName(), Group: group, Plural: "xs"})
	for i := range out {
		out[i].OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(xrd, xrd.GroupVersionKind())}
	}
	return out
}

// The roles of XRDs that no package contains are the ones of the RBAC manager before and after the manager, which
// maintains them while it manages the packages. It writes none while the RBAC manager runs.
func TestRolesOfXRDsMoveFromCoreAndBack(t *testing.T) {
	in := installCore(t, "none")
	t.Cleanup(func() { (&withManager{suite: in.suite}).restorePackageAPI(t) })
	create := func(group string) *unstructured.Unstructured {
		xrd := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositeResourceDefinition",
			"metadata": map[string]any{"name": "xs." + group},
			"spec":     map[string]any{"group": group, "names": map[string]any{"kind": "X", "plural": "xs"}},
		}}
		in.CreateTemporary(t, xrd)
		return xrd
	}
	first, second := create("first.example.org"), create("second.example.org")
	for _, role := range rolesOf(first, "first.example.org") {
		if err := in.Client.Create(t.Context(), &role, client.FieldOwner(plan.CrossplaneFieldManager)); err != nil {
			t.Fatal(err)
		}
	}
	roles := slices.Concat(rolesOf(first, "first.example.org"), rolesOf(second, "second.example.org"))

	audit := &env.Audit{}
	in.startManager(t, audit.Wrap(in.Config))
	if err := in.migrate(t, in.Config, 0); err != nil {
		t.Fatal(err)
	}
	maintained := func(want bool) {
		t.Helper()
		for _, role := range roles {
			wait.Until(t, env.Limit, fmt.Sprintf("%s is maintained by the manager: %t", role.Name, want), func() (string, bool) {
				var live rbacv1.ClusterRole
				if err := in.Client.Get(t.Context(), client.ObjectKeyFromObject(&role), &live); err != nil {
					return err.Error(), false
				}
				_, marked := live.Annotations[plan.ContentDigestAnnotation]
				return fmt.Sprintf("%+v", live),
					marked == want && rbac.Fulfills(live, role) && slices.EqualFunc(live.OwnerReferences, role.OwnerReferences,
						func(a, b metav1.OwnerReference) bool { return a.UID == b.UID && *a.Controller == *b.Controller })
			})
		}
	}
	maintained(true)
	in.Delete(t, roles[0].DeepCopy())
	maintained(true)

	back, err := tocore.Plan(t.Context(), tocore.Options{
		Client: newMigrationClient(t, in.Config), Namespace: namespace, Poll: pace,
	})
	if err != nil {
		t.Fatal(err)
	}
	(&withManager{suite: in.suite, standIn: newPackageManager(in.suite.core)}).runPlan(t, back)
	maintained(false)
	// The RBAC manager updates each role to its own form.
	for _, role := range roles {
		env.Update(
			t, in.Env, role.DeepCopy(),
			func(live *rbacv1.ClusterRole) { live.Labels, live.Rules = maps.Clone(role.Labels), role.Rules },
		)
	}
}
