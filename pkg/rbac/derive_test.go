package rbac

import (
	"bytes"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files")

func resources(names ...string) []schema.GroupResource {
	var out []schema.GroupResource
	for _, n := range names {
		out = append(out, schema.ParseGroupResource(n))
	}
	return out
}

func account(namespace, name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
}

// provider returns a revision with two groups of types.
func provider() Input {
	return Input{
		Kind: Provider, Package: "provider-db", Revision: "provider-db-0123456789ab",
		Defined:         resources("tables.db.example.org", "providerconfigs.example.org", "databases.db.example.org"),
		ServiceAccounts: []rbacv1.Subject{account("crossplane-system", "provider-db-0123456789ab")},
		Namespace:       "crossplane-system",
	}
}

// inputs are by the names of the golden files.
var inputs = map[string]func() Input{
	"provider": provider,
	"family": func() Input {
		in := provider()
		in.Family = resources("caches.cache.example.org", "providerconfigs.example.org")
		in.SafeStart = true
		in.Requests = []rbacv1.PolicyRule{
			{APIGroups: []string{"apiextensions.crossplane.io"}, Resources: []string{"compositions"}, Verbs: []string{
				"watch", "get", "list",
			}},
			{APIGroups: []string{
				"apiextensions.crossplane.io",
			}, Resources: []string{"compositions"}, Verbs: []string{"get"}, ResourceNames: []string{"x"}},
		}
		in.ServiceAccounts = append(in.ServiceAccounts, account("crossplane-system", "another"))
		return in
	},
	"minimal": func() Input {
		in := provider()
		in.Needs = minimal
		return in
	},
	"namespaced": func() Input {
		in := provider()
		in.Namespaced = true
		in.ClusterScoped = map[schema.GroupResource]bool{
			{Group: "example.org", Resource: "providerconfigs"}: true, {Group: "", Resource: "nodes"}: true,
		}
		in.Requests = []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"nodes", "nodes/status", "pods"}, Verbs: []string{"get"}},
			{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}},
		}
		return in
	},
	"provider-without-runtime": func() Input {
		in := provider()
		in.Requests = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}}
		return in.WithoutRuntime()
	},
	"function-that-requests": func() Input {
		return Input{
			Kind: Function, Package: "function-x", Revision: "function-x-0123456789ab", Namespace: "crossplane-system",
			// The CRDs of a function describe the schema of its input.
			Defined: resources("inputs.x.example.org"),
			Requests: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{
				"get",
			}}},
			ServiceAccounts: []rbacv1.Subject{account("crossplane-system", "function-x")},
		}
	},
	"provider-without-types": func() Input {
		in := provider()
		in.Defined = nil
		in.Requests = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}}
		in.ServiceAccounts = nil
		return in
	},
}

func TestDerive(t *testing.T) {
	for name, input := range inputs {
		t.Run(name, func(t *testing.T) {
			golden := filepath.Join("testdata", name+".yaml")
			got := documents(t, Derive(input()))
			if *update {
				if err := os.WriteFile(golden, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// documents encodes a set as YAML documents.
func documents(t testing.TB, s Set) []byte {
	t.Helper()
	var out [][]byte
	add := func(object any) {
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, text)
	}
	for _, o := range s.ClusterRoles {
		add(o)
	}
	for _, o := range s.ClusterRoleBindings {
		add(o)
	}
	for _, o := range s.Roles {
		add(o)
	}
	for _, o := range s.RoleBindings {
		add(o)
	}
	return bytes.Join(out, []byte("---\n"))
}

func TestNoRoles(t *testing.T) {
	for name, change := range map[string]func(*Input){
		"nothing defined":             func(in *Input) { in.Defined = nil },
		"nothing defined, safe start": func(in *Input) { in.Defined, in.SafeStart = nil, true },
		"what API servers have": func(in *Input) {
			in.Defined = resources(
				"validatingwebhookconfigurations.admissionregistration.k8s.io", "roles.rbac.authorization.k8s.io",
				"deployments.apps", "secrets",
			)
			in.Family = resources("providers.pkg.crossplane.io")
		},
		"a configuration": func(in *Input) { in.Kind = Configuration },
		"a configuration that requests": func(in *Input) {
			in.Kind, in.Requests = Configuration, []rbacv1.PolicyRule{{
				Verbs: []string{"get"},
			}}
		},
		"a function without a runtime": func(in *Input) {
			in.Kind, in.Requests = Function,
				[]rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}}
			*in = in.WithoutRuntime()
		},
		"a provider without types and a runtime": func(in *Input) {
			in.Defined, in.SafeStart = nil, true
			*in = in.WithoutRuntime()
		},
		"a function that requests nothing": func(in *Input) { in.Kind = Function },
	} {
		t.Run(name, func(t *testing.T) {
			in := provider()
			change(&in)
			if diff := cmp.Diff(Set{}, Derive(in)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestReserved(t *testing.T) {
	for name, want := range map[string]bool{
		"clusterroles.rbac.authorization.k8s.io": true, "gateways.gateway.networking.k8s.io": false,
		"buckets.example.org": false, "pods": true, "jobs.batch": true,
	} {
		if got := Reserved(schema.ParseGroupResource(name)); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestEqualInputInAnyOrder(t *testing.T) {
	want := Derive(inputs["family"]())
	rapid.Check(t, func(t *rapid.T) {
		in := inputs["family"]()
		in.Defined = append(rapid.Permutation(in.Defined).Draw(t, "defined"), in.Defined[0])
		in.Family = rapid.Permutation(in.Family).Draw(t, "family")
		in.Requests = rapid.Permutation(in.Requests).Draw(t, "requests")
		in.ServiceAccounts = rapid.Permutation(in.ServiceAccounts).Draw(t, "accounts")
		if diff := cmp.Diff(want, Derive(in)); diff != "" {
			t.Fatal(diff)
		}
	})
}

// In namespaced mode no permission for a namespaced resource applies outside of the
// package's namespace, and both roles together equal the role of the cluster-wide mode.
func TestNamespacedModeConfines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := provider()
		in.SafeStart = rapid.Bool().Draw(t, "safe start")
		in.Requests = rulesOf(t, "requests")
		known := []schema.GroupResource{{Group: "a.org", Resource: "pods"}, {Group: "b.a.org", Resource: "roles"}, {
			Group: "example.org", Resource: "providerconfigs",
		}}
		in.ClusterScoped = map[schema.GroupResource]bool{
			{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}: true,
		}
		for _, k := range rapid.SliceOf(rapid.SampledFrom(known)).Draw(t, "cluster-scoped") {
			in.ClusterScoped[k] = true
		}
		anywhere := programRules(Derive(in))
		in.Namespaced = true
		confined := Derive(in)
		if missing := Missing(programRules(confined), anywhere); missing != nil {
			t.Fatalf("lost: %+v", missing)
		}
		for _, role := range confined.ClusterRoles {
			if !strings.HasSuffix(role.Name, suffixSystem) {
				continue
			}
			for _, a := range attempts {
				if a.url == "" && allows(role.Rules, a) &&
					!in.ClusterScoped[schema.GroupResource{Group: a.group, Resource: a.resource}] {
					t.Fatalf("%+v is granted everywhere", a)
				}
			}
		}
	})
}

// programRules returns the rules of the runtime's roles.
func programRules(s Set) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, r := range s.ClusterRoles {
		if strings.HasSuffix(r.Name, suffixSystem) {
			rules = append(rules, r.Rules...)
		}
	}
	for _, r := range s.Roles {
		if strings.HasSuffix(r.Name, suffixSystem) {
			rules = append(rules, r.Rules...)
		}
	}
	return rules
}

func TestPermissionsOfACreator(t *testing.T) {
	set := Derive(inputs["namespaced"]())
	if Missing(set.Everywhere(), set.ClusterRoles[0].Rules) != nil ||
		Missing(set.Within("crossplane-system"), set.Roles[0].Rules) != nil {
		t.Error("who has the rules of the set may not create its roles")
	}
	if set.Within("default") != nil {
		t.Error("rules in another namespace")
	}
}

func TestParseNeeds(t *testing.T) {
	for text, want := range map[string]Needs{
		"": {}, " full ": {}, "minimal": minimal,
		"secrets=namespace, configmaps=none": {Secrets: OwnNamespace, ConfigMaps: Nothing},
		"minimal,secrets = read,events=all": {
			Secrets: Reading, ConfigMaps: Nothing, Events: Everything, Leases: OwnNamespace,
		},
		"full, leases=namespace, events=record": {Leases: OwnNamespace, Events: Recording},
	} {
		if got, err := ParseNeeds(text); err != nil || got != want {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		",", "least", "secrets", "secrets=some", "pods=none", "secrets=none,minimal", "secrets=none,secrets=all",
		"Secrets=none", "secrets=none=all",
	} {
		if got, err := ParseNeeds(text); !errors.Is(err, ErrInvalidPermissions) || got != (Needs{}) {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
	}
}

// A smaller need never grants more than a larger one, and sometimes less.
func TestSmallerNeedGrantsNoMore(t *testing.T) {
	full, _ := Needs{}.rules(false)
	reaches := []Reach{Everything, Reading, Recording, OwnNamespace, Nothing}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) Reach { return rapid.SampledFrom(reaches).Draw(t, name) }
		needs := Needs{draw("secrets"), draw("configmaps"), draw("events"), draw("leases")}
		everywhere, within := needs.rules(false)
		if more := Missing(full, slices.Concat(everywhere, within)); more != nil {
			t.Fatalf("%+v gives more than everything: %+v", needs, more)
		}
		secret := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}}
		reads := needs.Secrets == Everything || needs.Secrets == Reading
		if (Missing(everywhere, secret) == nil) != reads {
			t.Fatalf("%+v: reads every secret: %v", needs, !reads)
		}
	})
}

func FuzzParseNeeds(f *testing.F) {
	for _, seed := range []string{"", "minimal", "full,secrets=none", "secrets=namespace, configmaps=none", "a=b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		needs, err := ParseNeeds(text)
		if err != nil && (!errors.Is(err, ErrInvalidPermissions) || needs != Needs{}) {
			t.Errorf("%q: %+v, %v", text, needs, err)
		}
	})
}

// Every provider of a whole family has a role of some size; it has to stay one
// that a database takes.
func TestRolesOfALargeFamilyFit(t *testing.T) {
	in := provider()
	for i := range 2043 {
		in.Family = append(in.Family, schema.GroupResource{
			Group:    "service" + string(rune('a'+i%26)) + string(rune('a'+i/26%7)) + ".aws.upbound.example.org",
			Resource: "resourcesofsomelength" + strings.Repeat("x", i%12) + string(rune('a'+i%26)),
		})
	}
	sizes := map[string]int{}
	for _, role := range Derive(in).ClusterRoles {
		text, err := role.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		sizes[role.Name] = len(text)
	}
	t.Log(sizes)
	for _, size := range slices.Collect(maps.Values(sizes)) {
		if size > 1<<20 {
			t.Errorf("a role of %d bytes", size)
		}
	}
}
