package rbac

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

const policyText = `
allow:
- name: ours
  apiGroups: ["*.example.org"]
deny:
- name: no-secrets
  resources: [secrets]
`

func indent(text string) string { return strings.ReplaceAll(text, "\n", "\n    ") }

func TestParse(t *testing.T) {
	want := Policy{
		Allow: []Rule{{Name: "ours", APIGroups: []string{"*.example.org"}}},
		Deny:  []Rule{{Name: "no-secrets", Resources: []string{"secrets"}}},
	}
	for name, text := range map[string]string{
		"file":       policyText,
		"document":   "---\n" + policyText,
		"config map": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  policy.yaml: |" + indent(policyText),
	} {
		got, err := Parse([]byte(text))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
	nothing, err := Parse([]byte("allow: []"))
	if err != nil || nothing.Allow == nil {
		t.Errorf("an empty list allows nothing: %+v, %v", nothing, err)
	}
	open, err := Parse([]byte("deny: []"))
	if err != nil || open.Allow != nil {
		t.Errorf("no list allows what is not denied: %+v, %v", open, err)
	}
}

func TestParseRefuses(t *testing.T) {
	for text, why := range map[string]string{
		"":                                   "neither allow nor deny",
		"# nothing":                          "neither allow nor deny",
		"allow:":                             "allow has no value",
		"allow: []\ndeny: null":              "deny has no value",
		"allow: [{apiGroups: [a]}]":          "it has no name",
		"deny: [{name: x}]":                  "matches nothing",
		"deny: [{name: x, group: [a]}]":      `unknown field "deny[0].group"`,
		"denied: []":                         "unknown field",
		"allow: {}":                          "cannot unmarshal",
		"deny: [{name: x, apiGroups: [a*]}]": `the group "a*"`,
		"deny: [{name: x, resources: [a]}, {name: x, resources: [b]}]":       "two rules have the name",
		"allow: [{name: x, nonResourceURLs: [/a], resources: [b]}]":          "split it into two rules",
		"deny: []\n---\nallow: []":                                           "more than one document",
		"kind: ConfigMap\ndata: {other: x}":                                  "no key policy.yaml",
		"deny: [{name: " + strings.Repeat("x", 2<<20) + ", resources: [a]}]": "bytes, at most 1048576 are allowed",
		"Allow:":                             `unknown field "Allow"`,
		"Allow: []\nallow:":                  `unknown field "Allow"`,
		"allow: [{name: x, Resources: [a]}]": `unknown field "allow[0].Resources"`,
		"allow: []\nallow: []":               "already set",
		"allow: [{name: [}":                  "",
	} {
		c, err := Parse([]byte(text))
		if !errors.Is(err, ErrInvalidPolicy) || !strings.Contains(err.Error(), why) {
			t.Errorf("%.60q: got %v, want it to say %q", text, err, why)
		}
		if c.Allow != nil || c.Deny != nil {
			t.Errorf("%.60q: a policy beside the failure", text)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		policyText, "allow: []", "deny:", "a: &a [*a]", "kind: ConfigMap\ndata: {policy.yaml: 'allow: []'}",
		"allow: [{name: x, nonResourceURLs: ['*']}]",
		"deny: [{name: x, apiGroups: ['*.a'], resources: ['*/b'], verbs: ['*']}]",
		"deny: [{name: A, apiGroups: [], verbs: [get]}]",
	} {
		f.Add([]byte(seed))
	}
	requests := []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}},
		{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}},
		{APIGroups: []string{"b.a"}, Resources: []string{"a/b"}, Verbs: []string{"get"}, ResourceNames: []string{"x"}},
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := Parse(raw)
		if err != nil {
			if !errors.Is(err, ErrInvalidPolicy) {
				t.Errorf("%q: %v", raw, err)
			}
			return
		}
		text, err := yaml.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(text)
		if diff := cmp.Diff(c, again, cmpopts.EquateEmpty()); err != nil || diff != "" { // An empty list is not written.
			t.Errorf("%q written and read: %v %s", raw, err, diff)
		}
		if err := c.Check(requests); err != nil && !errors.Is(err, ErrPermissionDenied) {
			t.Error(err)
		}
	})
}

func TestYAML(t *testing.T) {
	missing := []rbacv1.PolicyRule{
		{APIGroups: []string{"b", "a"}, Resources: []string{"r"}, Verbs: []string{"get"}},
		{APIGroups: []string{"a"}, Resources: []string{"r"}, Verbs: []string{"get"}},
	}
	text, err := Lack{Everywhere: missing}.YAML(account("crossplane-system", "crossplane"))
	if err != nil {
		t.Fatal(err)
	}
	want := `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: xpkg:granted:NAME
rules:
- apiGroups:
  - a
  - b
  resources:
  - r
  verbs:
  - get
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: xpkg:granted:NAME:WHO
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: xpkg:granted:NAME
subjects:
- kind: ServiceAccount
  name: crossplane
  namespace: crossplane-system
`
	_, name, _ := strings.Cut(string(text), "xpkg:granted:")
	name, _, _ = strings.Cut(name, "\n")
	who := bindingName("", []rbacv1.Subject{account("crossplane-system", "crossplane")})[1:]
	if diff := cmp.Diff(want, strings.NewReplacer(name, "NAME", who, "WHO").Replace(string(text))); diff != "" {
		t.Error(diff)
	}
	if again, _ := (Lack{Everywhere: missing[:1]}).YAML(); !strings.Contains(string(again), name) {
		t.Error("the same rules have another name")
	}
	if other, _ := (Lack{Everywhere: missing[1:]}).YAML(); strings.Contains(string(other), name) {
		t.Error("other rules have the same name")
	}
	within, err := Lack{Within: missing[1:], Namespace: "here"}.YAML(account("crossplane-system", "crossplane"))
	if err != nil || strings.Contains(string(within), "ClusterRole") ||
		strings.Count(string(within), "namespace: here") != 2 {
		t.Errorf("what lacks in a namespace: %v\n%s", err, within)
	}
	if none, err := (Lack{}).YAML(); none != nil || err != nil {
		t.Errorf("%s, %v", none, err)
	}
}
