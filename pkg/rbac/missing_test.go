package rbac

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"pgregory.net/rapid"
)

func TestMissingIsExactlyTheDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		have, want := rulesOf(t, "have"), rulesOf(t, "want")
		missing := Missing(have, want)
		for _, a := range attempts {
			if allows(want, a) && !allows(have, a) && !allows(missing, a) {
				t.Fatalf("%+v is wanted, not had, and not said to be missing: %+v", a, missing)
			}
			if allows(missing, a) && !allows(want, a) {
				t.Fatalf("%+v is said to be missing and nobody wants it: %+v", a, missing)
			}
		}
		for _, rule := range missing {
			for _, g := range grants(rule) {
				if single := []rbacv1.PolicyRule{ruleOfGrant(g)}; !slices.ContainsFunc(attempts, func(a attempt) bool {
					return allows(single, a) && !allows(have, a)
				}) {
					t.Fatalf("%+v is said to be missing, but is there", g)
				}
			}
		}
	})
}

func TestCanonicalAllowsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := rulesOf(t, "rules")
		short := canonical(rules)
		for _, a := range attempts {
			if allows(rules, a) != allows(short, a) {
				t.Fatalf("%+v: %v as written, %v in %+v", a, allows(rules, a), allows(short, a), short)
			}
		}
		if diff := cmp.Diff(short, canonical(short)); diff != "" {
			t.Fatalf("not stable: %s", diff)
		}
		shuffled := rapid.Permutation(rules).Draw(t, "shuffled")
		if diff := cmp.Diff(short, canonical(shuffled)); diff != "" {
			t.Fatalf("depends on the order: %s", diff)
		}
	})
}

func TestOneRuleCoversAnother(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		have, want := ruleOf(t), ruleOf(t)
		single := []rbacv1.PolicyRule{have}
		covered := !slices.ContainsFunc(grants(want), func(g grant) bool { return !covers(have, g) })
		if got := coversRule(have, want); got != covered {
			t.Fatalf("as a whole %v, grant by grant %v", got, covered)
		}
		if covered && len(Missing(single, []rbacv1.PolicyRule{want})) > 0 {
			t.Fatal("what is covered is missing")
		}
	})
}

func TestMissing(t *testing.T) {
	rule := func(groups, resources, verbs string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{
			APIGroups: strings.Split(groups, "|"), Resources: strings.Split(resources, "|"), Verbs: strings.Split(verbs, "|"),
			ResourceNames: names,
		}
	}
	for name, tc := range map[string]struct {
		have, want, missing []rbacv1.PolicyRule
	}{
		"nothing wanted": {have: []rbacv1.PolicyRule{rule("a", "r", "get")}},
		"nothing had": {want: []rbacv1.PolicyRule{rule("b|a", "r", "get")}, missing: []rbacv1.PolicyRule{
			rule("a|b", "r", "get"),
		}},
		"spread over rules": {
			have: []rbacv1.PolicyRule{rule("a", "r", "get"), rule("a", "s", "get")},
			want: []rbacv1.PolicyRule{rule("a", "r|s", "get")},
		},
		"a verb": {
			have: []rbacv1.PolicyRule{rule("a", "r", "get")}, want: []rbacv1.PolicyRule{rule("a", "r", "get|list")},
			missing: []rbacv1.PolicyRule{rule("a", "r", "list")},
		},
		"all verbs are more than each": {
			have: []rbacv1.PolicyRule{rule("a", "r", "get|list|watch|create|update|patch|delete|deletecollection")},
			want: []rbacv1.PolicyRule{rule("a", "r", "*")}, missing: []rbacv1.PolicyRule{rule("a", "r", "*")},
		},
		"a resource is not its status": {
			have: []rbacv1.PolicyRule{rule("a", "r", "get")}, want: []rbacv1.PolicyRule{rule("a", "r/status", "get")},
			missing: []rbacv1.PolicyRule{rule("a", "r/status", "get")},
		},
		"every status": {have: []rbacv1.PolicyRule{rule("a", "*/status", "get")}, want: []rbacv1.PolicyRule{
			rule("a", "r/status", "get"),
		}},
		"one object is not all": {
			have: []rbacv1.PolicyRule{rule("a", "r", "get", "x")}, want: []rbacv1.PolicyRule{rule("a", "r", "get")},
			missing: []rbacv1.PolicyRule{rule("a", "r", "get")},
		},
		"all objects are each": {have: []rbacv1.PolicyRule{rule("a", "r", "get")}, want: []rbacv1.PolicyRule{
			rule("a", "r", "get", "x"),
		}},
		"escalate does not help": {
			have: []rbacv1.PolicyRule{rule(rbacv1.GroupName, "clusterroles", "*")},
			want: []rbacv1.PolicyRule{rule("a", "r", "get")}, missing: []rbacv1.PolicyRule{rule("a", "r", "get")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.missing, Missing(tc.have, tc.want)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if err := (Lack{Everywhere: Missing(tc.have, tc.want)}).Err(); (err != nil) != (len(tc.missing) > 0) ||
				err != nil && !errors.Is(err, ErrPermissionMissing) {
				t.Errorf("grantable: %v", err)
			}
		})
	}
}

func TestChanges(t *testing.T) {
	asks := func(resources, verbs string) Input {
		return Input{Kind: Function, Revision: "f-1", Requests: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: strings.Split(resources, ","), Verbs: strings.Split(verbs, ","),
		}}}
	}
	before, same := asks("pods", "get,list"), asks("pods", "get")
	same.Requests = append(same.Requests, rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"},
	})
	if added, removed := Changes(before, same); added != nil || removed != nil || Increase(added, "") != nil ||
		Fingerprint(before.Requests) != Fingerprint(same.Requests) {
		t.Errorf("another way to write the same: added %v, removed %v", added, removed)
	}
	added, removed := Changes(before, asks("pods,secrets", "get"))
	if diff := cmp.Diff(
		[]rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}}, added,
	); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(
		[]rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}}}, removed,
	); diff != "" {
		t.Error(diff)
	}
	if err := Increase(added, "a word"); !errors.Is(err, ErrPermissionIncrease) ||
		!strings.Contains(err.Error(), "get secrets in the core group") {
		t.Errorf("an increase: %v", err)
	}
}

// The same rules in more places are more permissions.
func TestPermissionsWithWiderScopeCover(t *testing.T) {
	narrow := provider()
	narrow.Needs = Needs{Secrets: OwnNamespace, ConfigMaps: Nothing}
	wide := provider()
	wide.Needs = Needs{Secrets: Everything, ConfigMaps: Nothing}
	added, _ := Changes(narrow, wide)
	if len(Missing(added, []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{
		"*",
	}}})) > 0 {
		t.Errorf("secrets of all namespaces instead of one: added %v", added)
	}
	if added, _ := Changes(wide, narrow); added != nil {
		t.Errorf("secrets of one namespace instead of all: added %v", added)
	}
}

// A rule of a few kilobytes that expands to billions of grants is neither expanded nor
// lost.
func TestRulesWithTooManyGrantsAreNotExpanded(t *testing.T) {
	var many []string
	for i := range 2000 {
		many = append(many, fmt.Sprintf("w%04d", i))
	}
	bomb := rbacv1.PolicyRule{APIGroups: many, Resources: many, Verbs: many, ResourceNames: many}
	if diff := cmp.Diff([]rbacv1.PolicyRule{bomb}, Missing(nil, []rbacv1.PolicyRule{bomb})); diff != "" {
		t.Error("the rule is not missing in whole")
	}
	everything := rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}
	if missing := Missing([]rbacv1.PolicyRule{everything}, []rbacv1.PolicyRule{bomb}); missing != nil {
		t.Error("one rule covers it")
	}
	if got := canonical([]rbacv1.PolicyRule{bomb}); len(got) != 1 {
		t.Errorf("%d rules of one", len(got))
	}
	if err := (Policy{}).Check([]rbacv1.PolicyRule{bomb}); !errors.Is(err, ErrPermissionDenied) {
		t.Errorf("the policy allows it: %v", err)
	}
}
