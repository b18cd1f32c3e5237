package planner_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
)

// A plan shows which requested permissions let the runtime write objects that neither the package nor its dependencies
// define, also if they need no approval.
func TestPlanShowsPermissionsForObjectsOfOthers(t *testing.T) {
	s := newFakeContent()
	const at = "registry.example.com/"
	s.put(at+"boats:v1", provider("boats", `spec:
  dependsOn: [{provider: registry.example.com/water, version: ">=v1"}]
  controller:
    permissionRequests:
    - {apiGroups: [boats.test, water.test, deep.test, roads.test, ""], resources: [things], verbs: [get, patch], resourceNames: [mine]}
    - {apiGroups: [""], resources: [secrets], verbs: [get, create]}
    - {apiGroups: [""], resources: [namespaces], verbs: [create]}
`, crd("boats.test", "Boat", "one")))
	s.put(at+"water:v1.0.0", provider("water", `spec:
  dependsOn: [{provider: registry.example.com/deep, version: ">=v1"}]
  controller:
    permissionRequests: [{apiGroups: [water.test, boats.test], resources: [things], verbs: [create]}]
`, crd("water.test", "Lake", "one")))
	s.put(at+"deep:v1.0.0", provider("deep", "", crd("deep.test", "Trench", "one")))
	pl := fakePlanner(t, s)
	pl.Registry = s
	got, err := pl.Install(t.Context(), env.NewProvider("boats", at+"boats:v1"), planner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rule := func(group, resource, verb string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{
			APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}, ResourceNames: names,
		}
	}
	want := []rbacv1.PolicyRule{rule("", "namespaces", "create"), {
		APIGroups: []string{"", "roads.test"}, Resources: []string{"things"}, Verbs: []string{"patch"},
		ResourceNames: []string{"mine"},
	}}
	if diff := cmp.Diff(want, got.Permissions.Foreign); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, a := range got.AddedPackages {
		if a.Reference != at+"water:v1.0.0" {
			continue
		}
		if diff := cmp.Diff([]rbacv1.PolicyRule{rule("boats.test", "things", "create")}, a.Permissions.Foreign); diff != "" {
			t.Errorf("of the dependency, -want +got:\n%s", diff)
		}
	}
	if len(got.AddedPackages) != 2 {
		t.Errorf("the plan adds %d packages, want 2", len(got.AddedPackages))
	}
}
