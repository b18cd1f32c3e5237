package rbac

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
	"pgregory.net/rapid"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// victim is the name of an object of another user.
const victim = "victim"

// listedGrants returns each grant of the table, for all objects.
func listedGrants() []grant {
	var out []grant
	for _, e := range escalations {
		for _, verb := range e.verbs {
			verb = strings.Replace(verb, star, "get", 1)
			for _, url := range e.urls {
				out = append(out, grant{url: strings.TrimSuffix(url, star), verb: verb})
			}
			for _, t := range e.targets {
				for _, resource := range t.resources {
					group, resource := strings.Replace(t.group, star, "any", 1), strings.Replace(resource, star, "things", 1)
					out = append(out, grant{group: group, resource: resource, verb: verb})
				}
			}
		}
	}
	return out
}

// spellings returns the grants that include a grant, or the same for an object with a name.
func spellings(g grant) []grant {
	if g.url != "" {
		return []grant{g, {url: g.url, verb: star}, {url: g.url + "/x", verb: g.verb}, {url: g.url + "/*", verb: g.verb}, {
			url: "/*", verb: g.verb,
		}}
	}
	plural, sub, isSub := strings.Cut(g.resource, "/")
	resources := []string{g.resource, star, plural + "/*"}
	if isSub {
		resources = append(resources, starSlash+sub)
	}
	var out []grant
	for _, name := range []string{"", victim, v1.RootCASecretName} {
		for _, group := range []string{g.group, star} {
			for _, resource := range resources {
				for _, verb := range []string{g.verb, star} {
					out = append(out, grant{group: group, resource: resource, verb: verb, name: name})
				}
			}
		}
	}
	return out
}

// isNamedRead reports whether a grant only allows to read one Secret: the one permission of the table that a name
// bounds.
func isNamedRead(g grant) bool {
	return g.resource == "secrets" && g.name == victim && slices.Contains([]string{"get", "list", "watch"}, g.verb)
}

// Each permission of the table needs the consent of a user or the policy: for all objects or one, and in each spelling.
//
// hardening: E12
func TestEachEscalationNeedsConsent(t *testing.T) {
	seen := map[grant]bool{}
	for _, listed := range listedGrants() {
		for _, g := range spellings(listed) {
			if seen[g] {
				continue
			}
			seen[g] = true
			rule := ruleOfGrant(g)
			for _, in := range []Input{
				{Kind: Provider, Needs: minimal}, {Kind: Function}, {Kind: Function, Namespaced: true, Namespace: "here"},
			} {
				in.Requests = []rbacv1.PolicyRule{rule}
				waits := Policy{}.Check(in.Requests) != nil || len(Escalating(nil, nil, nil, in)) > 0
				// A subresource of Secrets does not exist.
				if bounded := isNamedRead(g); waits == bounded && g.resource != "secrets/*" {
					t.Errorf("a %s waits for consent to %s: %t, want %t", in.Kind, Describe(rule), waits, !bounded)
				}
			}
		}
	}
}

// The table contains what is known to amount to control of the cluster: each of these runs a program, creates objects
// or obtains an identity.
func TestKnownAttacksAreListed(t *testing.T) {
	for resource, verbs := range map[string]string{
		"/pods": "create patch", "/pods/resize": "patch", "/pods/status": "patch", "/pods/binding": "create",
		"/bindings":        "create",
		"apps/deployments": "patch", "batch/cronjobs": "update", "/services": "patch",
		"discovery.k8s.io/endpointslices": "update",
		"/serviceaccounts":                "patch", "/nodes/log": "get", "/nodes/checkpoint": "create",
		"/persistentvolumeclaims":                                   "deletecollection",
		"certificates.k8s.io/certificatesigningrequests/nodeclient": "create", "kubernetes.crossplane.io/objects": "patch",
		"kubernetes.m.crossplane.io/providerconfigs": "update", "helm.crossplane.io/releases": "create",
		"argoproj.io/applications": "patch",
		"argoproj.io/workflows":    "create", "tf.upbound.io/workspaces": "create",
		"ansible.crossplane.io/ansibleruns": "create",
		"tekton.dev/taskruns":               "create", "triggers.tekton.dev/triggers": "create",
		"kyverno.io/clusterpolicies":     "create",
		"mutations.gatekeeper.sh/assign": "create", "source.toolkit.fluxcd.io/gitrepositories": "patch",
		"velero.io/restores":                         "create",
		"kustomize.toolkit.fluxcd.io/kustomizations": "patch", "cluster.x-k8s.io/machines": "create",
		"kubevirt.io/virtualmachines":        "create",
		"monitoring.coreos.com/prometheuses": "create", "pulumi.com/stacks": "create", "upgrade.cattle.io/plans": "create",
		"chaos-mesh.org/workflows": "create", "gitops.kluctl.io/kluctldeployments": "patch",
		"work.karmada.io/works":                      "create",
		"rbacmanager.reactiveops.io/rbacdefinitions": "create", "capsule.clastix.io/tenants": "update",
		"k8s.cni.cncf.io/network-attachment-definitions": "create",
		"apps/deployments/unknown":                       "update", "new-in-kubernetes/things": "create",
		"/pods/unknown": "update",
	} {
		group, resource, _ := strings.Cut(resource, "/")
		for _, verb := range strings.Fields(verbs) {
			if rule := ruleFor(group, resource, verb, victim); !Escalates(rule) {
				t.Errorf("%s needs no consent", Describe(rule))
			}
		}
	}
}

// tableWords returns the words of a part of the grants in the table, and more.
func tableWords(part func(grant) string, more ...string) *rapid.Generator[[]string] {
	set := map[string]bool{}
	for _, g := range listedGrants() {
		if g.url == "" {
			set[part(g)] = true
		}
	}
	return some(append(slices.Sorted(maps.Keys(set)), more...)...)
}

var (
	escalatingGroups    = tableWords(func(g grant) string { return g.group }, "example.org", star)
	escalatingResources = tableWords(
		func(g grant) string { return g.resource }, "events", "things/finalizers", "*/status", "*/exec", "pods/log", star,
	)
	escalatingVerbs = tableWords(func(g grant) string { return g.verb }, "unusual", star)
)

// escalatingRule generates rules from the words of the table, of the harmless permissions and of other packages.
func escalatingRule(t *rapid.T) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: escalatingGroups.Draw(t, "groups"), Resources: escalatingResources.Draw(t, "resources"),
		Verbs: escalatingVerbs.Draw(t, "verbs"),
		ResourceNames: rapid.SliceOfN(rapid.SampledFrom([]string{victim, "other", v1.RootCASecretName}), 0, 2).
			Draw(t, "names"),
	}
}

// A name removes an escalation only if it bounds the read of a Secret, and a rule that includes an escalating one
// escalates.
func TestWiderRulesEscalateToo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := escalatingRule(t)
		for _, g := range grants(rule) {
			all := g
			all.name = ""
			wide, narrow := len(escalationsOfGrant(all)) > 0, len(escalationsOfGrant(g)) > 0
			secret := g // A subresource of all resources is also one of Secrets, and every name but that of the CA bounds alike.
			if strings.HasPrefix(g.resource, "*/") {
				secret.resource = "secrets"
			}
			if g.name != "" && g.name != v1.RootCASecretName {
				secret.name = victim
			}
			if wide != narrow && !isNamedRead(secret) {
				t.Fatalf("%s escalates: %t, and without a name %t", Describe(ruleOfGrant(g)), narrow, wide)
			}
			if narrow && !Escalates(rule) {
				t.Fatalf("%s does not escalate, and its part %s does", Describe(rule), Describe(ruleOfGrant(g)))
			}
		}
		other := escalatingRule(t)
		if covered, _ := validation.Covers([]rbacv1.PolicyRule{rule}, []rbacv1.PolicyRule{other}); covered &&
			Escalates(other) && !Escalates(rule) {
			t.Fatalf("%s does not escalate, and %s does, which it covers", Describe(rule), Describe(other))
		}
	})
}

// What needs approval depends on the permissions, and not on how rules are split, merged and ordered.
func TestNotationDoesNotChangeWhatNeedsApproval(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := rapid.SliceOfN(rapid.Custom(escalatingRule), 1, 4).Draw(t, "rules")
		var split []rbacv1.PolicyRule
		for _, rule := range rules {
			for _, g := range grants(rule) {
				split = append(split, ruleOfGrant(g))
			}
		}
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 0))
		random.Shuffle(len(split), func(i, j int) { split[i], split[j] = split[j], split[i] })
		whole := Escalating(nil, nil, nil, Input{Kind: Function, Requests: rules})
		if diff := cmp.Diff(whole, Escalating(nil, nil, nil, Input{Kind: Function, Requests: split})); diff != "" {
			t.Fatalf("-as written +split: %s", diff)
		}
	})
}

// A rule of the allow list approves exactly the objects that it names, and a rule with wildcards approves none.
func TestAllowListApprovesByName(t *testing.T) {
	for _, g := range listedGrants() {
		if g.url != "" || isDangerous(g.verb) {
			continue
		}
		named := Rule{
			APIGroups: []string{g.group}, Resources: []string{g.resource}, Verbs: []string{g.verb},
			ResourceNames: []string{v1.RootCASecretName},
		}
		wild := Rule{APIGroups: []string{star}, Resources: []string{star}, ResourceNames: []string{star}}
		for name, tc := range map[string]struct {
			allow Rule
			name  string
			want  bool
		}{
			"the named object": {named, v1.RootCASecretName, false}, "another object": {named, "crossplane-tls-server", true},
			"all objects": {named, "", true}, "a wildcard": {wild, v1.RootCASecretName, true},
		} {
			g.name = tc.name
			rule := ruleOfGrant(g)
			got := Escalating([]Rule{tc.allow}, nil, nil, Input{Kind: Function, Requests: []rbacv1.PolicyRule{rule}})
			if waits := len(got) > 0; waits != tc.want {
				t.Errorf("%s: %s waits: %t", name, Describe(rule), waits)
			}
		}
	}
}

func TestForeignPermissions(t *testing.T) {
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{
			"own.example.org", "other.example.org",
		}, Resources: []string{"things"}, Verbs: []string{"get", "patch"}, ResourceNames: []string{victim}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{star}, Resources: []string{"things"}, Verbs: []string{star}},
		{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}},
	}
	want := []rbacv1.PolicyRule{ruleFor(star, "things", star)}
	if diff := cmp.Diff(want, Foreign(rules, []string{"own.example.org", star})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	want = []rbacv1.PolicyRule{ruleFor("other.example.org", "things", "patch", victim)}
	if diff := cmp.Diff(want, Foreign(rules[:2], []string{"own.example.org"})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := fmt.Sprint(rules[0].Verbs); got != "[get patch]" {
		t.Errorf("the rule was changed: %s", got)
	}
}
