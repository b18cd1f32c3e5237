package rbac

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

// A claim has the rules of its composite, except for users who only browse.
func TestCompositesAndClaims(t *testing.T) {
	rules := func(claim string) map[string][]rbacv1.PolicyRule {
		out := map[string][]rbacv1.PolicyRule{}
		for _, role := range DeriveComposite(Composite{
			Name: "xs.example.org", Group: "example.org", Plural: "xs", Claim: claim,
		}) {
			out[role.Name] = role.Rules
		}
		return out
	}
	rule := func(verb string, resources ...string) rbacv1.PolicyRule {
		verbs := []string{verb}
		if verb == "view" {
			verbs = []string{"get", "list", "watch"}
		}
		return rbacv1.PolicyRule{APIGroups: []string{"example.org"}, Resources: resources, Verbs: verbs}
	}
	const name = "crossplane:composite:xs.example.org:aggregate-to-"
	without := map[string][]rbacv1.PolicyRule{
		name + "browse":     {rule("view", "xs", "xs/status")},
		name + "crossplane": {rule("*", "xs", "xs/status"), rule("update", "xs/finalizers")},
		name + "edit":       {rule("*", "xs", "xs/status")},
		name + "view":       {rule("view", "xs", "xs/status")},
	}
	if diff := cmp.Diff(without, rules("")); diff != "" {
		t.Errorf("without a claim (-want +got):\n%s", diff)
	}
	with := map[string][]rbacv1.PolicyRule{
		name + "browse": {rule("view", "xs", "xs/status")},
		name +
			"crossplane": {rule("*", "xs", "xs/status", "cs", "cs/status"), rule("update", "xs/finalizers", "cs/finalizers")},
		name + "edit": {rule("*", "xs", "xs/status", "cs", "cs/status")},
		name + "view": {rule("view", "xs", "xs/status", "cs", "cs/status")},
	}
	if diff := cmp.Diff(with, rules("cs")); diff != "" {
		t.Errorf("with a claim (-want +got):\n%s", diff)
	}
}

// Tools select the roles by these labels.
func TestLabelsOfComposites(t *testing.T) {
	got := map[string]map[string]string{}
	for _, role := range DeriveComposite(Composite{Name: "x", Group: "g", Plural: "p"}) {
		got[role.Name[len("crossplane:composite:x:aggregate-to-"):]] = role.Labels
	}
	want := map[string]map[string]string{
		"browse":     {labelAggregateToBrowse: "true", labelComposite: "x"},
		"crossplane": {labelAggregateToCrossplane: "true"},
		"edit": {
			labelAggregateToAdmin: "true", labelAggregateToEdit: "true", labelAggregateToNSAdmin: "true",
			labelAggregateToNSEdit: "true", labelComposite: "x",
		},
		"view": {labelAggregateToView: "true", labelAggregateToNSView: "true", labelComposite: "x"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

// A package cannot obtain roles for other resources with the names of its composite resources: a name that no CRD can
// have has no roles.
func TestCompositesHaveNoRolesForOtherNames(t *testing.T) {
	for _, c := range []Composite{
		{Name: "x", Group: "victim.example.org", Plural: "*"},
		{Name: "x", Group: "victim.example.org", Plural: "things/status"},
		{Name: "x", Group: "victim.example.org"},
		{Name: "x", Group: "*", Plural: "things"},
		{Name: "x", Plural: "pods"},
	} {
		if roles := DeriveComposite(c); len(roles) > 0 {
			t.Errorf("%+v has the roles %+v", c, roles)
		}
	}
	for _, claim := range []string{"*", "things/status", "a b"} {
		with := DeriveComposite(Composite{Name: "x", Group: "example.org", Plural: "things", Claim: claim})
		if without := DeriveComposite(Composite{
			Name: "x", Group: "example.org", Plural: "things",
		}); !cmp.Equal(without, with) {
			t.Errorf("the claim %q has roles: %+v", claim, with)
		}
	}
}
