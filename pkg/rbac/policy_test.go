package rbac

import (
	"errors"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"pgregory.net/rapid"
)

func TestPolicy(t *testing.T) {
	const policy = `
allow:
- {name: compositions, apiGroups: [apiextensions.crossplane.io], resources: [compositions], verbs: [get, list, watch]}
- {name: our-groups, apiGroups: ["*.example.org"]}
- {name: workloads, apiGroups: [apps, ""], resources: [deployments, pods, "*/status"]}
- {name: may-bind, apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], verbs: [bind], resourceNames: [viewer]}
- {name: metrics, nonResourceURLs: ["/metrics/*"]}
deny:
- {name: no-secrets, resources: [secrets]}
- {name: no-exec, resources: [pods/exec]}
- {name: no-internal, apiGroups: [internal.example.org]}
`
	configured, err := Parse([]byte(policy))
	if err != nil {
		t.Fatal(err)
	}
	request := func(groups, resources, verbs string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{
			APIGroups: strings.Split(groups, "|"), Resources: strings.Split(resources, "|"), Verbs: strings.Split(verbs, "|"),
			ResourceNames: names,
		}
	}
	url := func(u string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{NonResourceURLs: []string{u}, Verbs: []string{"get"}}
	}
	const uncovered = "no rule of the allow list covers it"
	for name, tc := range map[string]struct {
		policy  Policy
		request rbacv1.PolicyRule
		// why is a part of the message; empty when the request passes.
		why string
	}{
		"allowed": {configured, request("apiextensions.crossplane.io", "compositions", "get|watch"), ""},
		"a verb too many": {
			configured, request("apiextensions.crossplane.io", "compositions", "get|delete"), uncovered,
		},
		"all verbs":          {configured, request("apiextensions.crossplane.io", "compositions", "*"), uncovered},
		"a group by its end": {configured, request("db.example.org", "anything", "*"), ""},
		"the end itself":     {configured, request("example.org", "anything", "get"), uncovered},
		"a denied group": {
			configured, request("internal.example.org", "anything", "get"), `denied by the rule "no-internal"`,
		},
		"every group":          {configured, request("*", "deployments", "get"), uncovered},
		"every group touches":  {configured, request("*", "deployments", "get"), `denied by the rule "no-internal"`},
		"a denied resource":    {configured, request("", "secrets", "get"), `denied by the rule "no-secrets"`},
		"one of a denied":      {configured, request("", "secrets", "get", "mine"), `denied by the rule "no-secrets"`},
		"denied among others":  {configured, request("", "pods|secrets", "get"), `denied by the rule "no-secrets"`},
		"all touch the denied": {configured, request("", "*", "get"), `denied by the rule "no-secrets"`},
		"a denied subresource": {configured, request("", "pods/exec", "create"), `denied by the rule "no-exec"`},
		"of a denied resource": {
			configured, request("db.example.org", "secrets/scale", "get"), `denied by the rule "no-secrets"`,
		},
		"that subresource of all": {configured, request("", "*/exec", "create"), `denied by the rule "no-exec"`},
		"a status of anything":    {configured, request("apps", "daemonsets/status", "get"), ""},
		"bind, named":             {configured, request("rbac.authorization.k8s.io", "clusterroles", "bind", "viewer"), ""},
		"bind, another role": {
			configured, request("rbac.authorization.k8s.io", "clusterroles", "bind", "admin"), "contains the verb bind",
		},
		"bind, every role": {
			configured, request("rbac.authorization.k8s.io", "clusterroles", "bind"), "contains the verb bind",
		},
		"a URL":                {configured, url("/metrics/slis"), ""},
		"another URL":          {configured, url("/logs"), uncovered},
		"nothing configured":   {Policy{}, request("apps", "deployments", "*"), ""},
		"nothing allowed":      {Policy{Allow: []Rule{}}, request("apps", "deployments", "get"), uncovered},
		"secrets of all, zero": {Policy{}, request("", "secrets", "*"), ""},
		"escalate, zero": {
			Policy{}, request("rbac.authorization.k8s.io", "roles", "escalate"), "contains the verb escalate",
		},
		"all verbs of roles": {Policy{}, request("rbac.authorization.k8s.io", "roles", "*"), "contains the verb bind"},
		"impersonate, zero":  {Policy{}, request("", "users", "impersonate"), "contains the verb impersonate"},
		"impersonate, limited": {
			Policy{}, request("authentication.k8s.io", "users", "impersonate:user-info"),
			"contains the verb impersonate:user-info",
		},
		"all verbs of accounts": {Policy{}, request("", "serviceaccounts", "*"), "contains the verb impersonate"},
		"all verbs of the core": {Policy{}, request("", "*", "*"), "contains the verb impersonate"},
		"everything, zero":      {Policy{}, request("*", "*", "get"), "it covers everything"},
		"every URL, zero":       {Policy{}, url("/*"), "it covers everything"},
		"everything, allowed but for the verbs": {
			Policy{Allow: []Rule{{Name: "all", APIGroups: []string{"*"}}}}, request("*", "*", "*"), "contains the verb escalate",
		},
		"everything, named": {
			Policy{Allow: []Rule{{Name: "all", APIGroups: []string{"*"}, Verbs: []string{
				"*", "escalate", "bind", "impersonate",
			}}}}, request("*", "*", "*"), "",
		},
		"everything, denied": {
			Policy{
				Allow: []Rule{{Name: "all", APIGroups: []string{"*"}, Verbs: []string{"*", "escalate", "bind", "impersonate"}}},
				Deny:  []Rule{{Name: "no", Verbs: []string{"escalate"}}},
			}, request("*", "*", "*"), `denied by the rule "no"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.policy.Check([]rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}}, tc.request})
			if tc.why == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if !errors.Is(err, ErrPermissionDenied) || !strings.Contains(err.Error(), tc.why) ||
				!strings.Contains(err.Error(), Describe(tc.request)) {
				t.Errorf("got %v, want it to say %q of %q", err, tc.why, Describe(tc.request))
			}
			var denied *Denied
			if !errors.As(err, &denied) || len(denied.Denials) != 1 {
				t.Errorf("the cause is %#v", err)
			}
		})
	}
}

func TestEachRefusedRequestIsNamed(t *testing.T) {
	var requests []rbacv1.PolicyRule
	for _, r := range []string{"one", "two", "three"} {
		requests = append(requests, rbacv1.PolicyRule{APIGroups: []string{"g"}, Resources: []string{r}, Verbs: []string{
			"get",
		}})
	}
	err := Policy{Deny: []Rule{{Name: "a", Resources: []string{"one"}}, {Name: "b", Resources: []string{
		"three", "one",
	}}}}.Check(requests)
	want := `the package requests permissions that the policy does not allow: get one in g (denied by the rule "a", denied by the rule "b"); get three in g (denied by the rule "b")`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// within reports whether a rule of a policy matches an attempt.
func (r Rule) within(a attempt, denies bool) bool {
	star := func(words []string) []string {
		if len(words) == 0 {
			return []string{"*"}
		}
		return words
	}
	var groups []string
	for _, g := range star(r.APIGroups) {
		if suffix, ok := strings.CutPrefix(g, "*."); ok && strings.HasSuffix(a.group, "."+suffix) {
			g = a.group
		}
		groups = append(groups, g)
	}
	rule := rbacv1.PolicyRule{Verbs: star(r.Verbs), ResourceNames: r.ResourceNames, NonResourceURLs: r.NonResourceURLs}
	if len(r.NonResourceURLs) == 0 {
		rule.APIGroups, rule.Resources = groups, star(r.Resources)
	}
	if allows([]rbacv1.PolicyRule{rule}, a) {
		return true
	}
	whole := a
	whole.subresource = ""
	return denies && a.subresource != "" && allows([]rbacv1.PolicyRule{rule}, whole)
}

func policyRuleOf(t *rapid.T) Rule {
	r := ruleOf(t)
	groups := r.APIGroups
	if rapid.Bool().Draw(t, "pattern") && len(groups) > 0 {
		groups = []string{"*.a.org"}
	}
	return Rule{
		Name: "rule", APIGroups: groups, Resources: r.Resources, Verbs: r.Verbs, ResourceNames: r.ResourceNames,
		NonResourceURLs: r.NonResourceURLs,
	}
}

func TestPolicyAgainstEveryAttempt(t *testing.T) {
	passed, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		request := ruleOf(t)
		c := Policy{Allow: rapid.SliceOfN(rapid.Custom(policyRuleOf), 0, 4).Draw(t, "allow")}
		if rapid.Bool().Draw(t, "deny") {
			c.Deny = []Rule{policyRuleOf(t)}
		}
		if rapid.Bool().Draw(t, "allow the request") {
			// Random rules rarely cover a random request.
			c.Allow = append(c.Allow, Rule{
				Name: "request", APIGroups: request.APIGroups, Resources: request.Resources, Verbs: request.Verbs,
				ResourceNames: request.ResourceNames, NonResourceURLs: request.NonResourceURLs,
			})
		}
		requests := []rbacv1.PolicyRule{request}
		under := true
		for _, a := range attempts {
			if !allows(requests, a) {
				continue
			}
			if slices.ContainsFunc(c.Deny, func(r Rule) bool { return r.within(a, true) }) ||
				!slices.ContainsFunc(c.Allow, func(r Rule) bool { return r.within(a, false) }) {
				under = false
				break
			}
		}
		err := c.Check(requests)
		if err == nil && !under {
			t.Fatalf("%+v is not allowed by the policy and passed", request)
		}
		dangerous := slices.ContainsFunc(grants(request), func(g grant) bool { return len(dangerousVerbs(g)) > 0 })
		if err != nil && under && !dangerous {
			t.Fatalf("%+v is allowed by the policy: %v", request, err)
		}
		if err == nil {
			passed++
		} else {
			refused++
		}
	})
	if !testing.Short() && (passed == 0 || refused == 0) {
		t.Errorf("%d passed and %d were refused: the property shows nothing", passed, refused)
	}
}
