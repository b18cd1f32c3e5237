package desired

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

func TestOutsideWebhookRules(t *testing.T) {
	tests := map[string]struct {
		rules string
		want  string
	}{
		"own resource":     {`{apiGroups: [own.test], resources: [things], operations: ["*"]}`, ""},
		"own subresources": {`{apiGroups: [own.test], resources: [things/status, things/*], operations: [CREATE]}`, ""},
		"foreign resource": {
			`{apiGroups: [own.test], resources: [things, others], operations: [CREATE]}`, "validate CREATE own.test/others",
		},
		"all resources": {`{apiGroups: [own.test], resources: ["*"], operations: ["*"]}`, "validate * own.test/*"},
		"all subresources": {
			`{apiGroups: [own.test], resources: ["*/*", "*/status"], operations: [CREATE]}`,
			"validate CREATE own.test/*/*; validate CREATE own.test/*/status",
		},
		"own plural, all groups": {
			`{apiGroups: ["*"], resources: [things], operations: [CREATE]}`, "validate CREATE */things",
		},
		"everything": {`{apiGroups: ["*"], resources: ["*/*"], operations: ["*"]}`, "validate * */*/*"},
		"every group": {
			`{apiGroups: ["*"], resources: [things], operations: [UPDATE, CREATE]}`, "validate CREATE,UPDATE */things",
		},
		"core group": {
			`{apiGroups: [""], resources: [pods, secrets], operations: [CREATE]}`,
			"validate CREATE core/pods; validate CREATE core/secrets",
		},
		"own and foreign": {
			`{apiGroups: [own.test, apps], resources: [things/scale], operations: [CREATE, "*"]}`,
			"validate * apps/things/scale",
		},
		"subdomain": {
			`{apiGroups: [sub.own.test], resources: [things], operations: [CREATE]}`, "validate CREATE sub.own.test/things",
		},
		"parent domain": {
			`{apiGroups: [test], resources: [things], operations: [CREATE]}`, "validate CREATE test/things",
		},
		"reserved resource": {
			`{apiGroups: [apiextensions.crossplane.io], resources: [ours], operations: [CREATE]}`,
			"validate CREATE apiextensions.crossplane.io/ours",
		},
		"text of another rule": {
			`{apiGroups: ["x/y; mutate * *"], resources: ["*"], operations: ["C; D"]}`, "validate C??D x/y??mutate?*?*/*",
		},
		"twice": {
			`{apiGroups: [apps, apps], resources: [deployments], operations: [CREATE]}`, "validate CREATE apps/deployments",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			objects := objectsOf(t, fmt.Sprintf(webhookStream, "Validating", "", tc.rules))
			rules, err := objects.OutsideWebhookRules()
			if err != nil {
				t.Fatal(err)
			}
			if got := FormatWebhookRules(rules); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if left := UncoveredWebhookRules(ParseWebhookRules(tc.want), rules); len(left) > 0 &&
				!strings.Contains(tc.want, "?") {
				t.Errorf("the rules do not cover themselves: %v", left)
			}
		})
	}
}

// Neither selectors nor the failure policy make the rules of a webhook narrower.
func TestSelectorsDoNotNarrowOutsideWebhookRules(t *testing.T) {
	for _, field := range []string{
		"failurePolicy: Ignore", "objectSelector: {matchLabels: {own: test}}",
		"namespaceSelector: {matchLabels: {own: test}}",
		"matchPolicy: Exact", `matchConditions: [{name: never, expression: "false"}]`,
	} {
		rules, err := objectsOf(t, fmt.Sprintf(
			webhookStream, "Mutating", field, `{apiGroups: [""], resources: [pods], operations: [CREATE], scope: Namespaced}`,
		)).OutsideWebhookRules()
		if err != nil || FormatWebhookRules(rules) != "mutate CREATE core/pods" {
			t.Errorf("%s: %v, %v", field, rules, err)
		}
	}
}

func TestUncoveredWebhookRules(t *testing.T) {
	tests := []struct{ allowed, rules, want string }{
		{"", "validate CREATE core/pods", "validate CREATE core/pods"},
		{"validate CREATE core/pods", "validate CREATE core/pods", ""},
		{"validate CREATE core/pods", "validate CREATE,DELETE core/pods", "validate CREATE,DELETE core/pods"},
		{"validate CREATE core/pods", "mutate CREATE core/pods", "mutate CREATE core/pods"},
		{"mutate * core/pods", "validate CREATE core/pods", "validate CREATE core/pods"},
		{"validate * core/pods", "validate CREATE core/pods", ""},
		{"validate * core/pods", "validate CREATE core/pods/status", "validate CREATE core/pods/status"},
		{"validate * core/pods/*", "validate CREATE core/pods/status", ""},
		{"validate * core/*", "validate CREATE core/pods; validate * core/*/*", "validate * core/*/*"},
		{"validate * */*/*", "validate CREATE core/pods; validate * apps/deployments/scale", ""},
		{"validate * apps/*", "validate CREATE core/pods", "validate CREATE core/pods"},
		{"validate CREATE core/pods; nonsense; validate CREATE", "validate CREATE core/pods", ""},
		{"*", "validate CREATE core/pods", "validate CREATE core/pods"},
	}
	for _, tc := range tests {
		got := UncoveredWebhookRules(ParseWebhookRules(tc.allowed), ParseWebhookRules(tc.rules))
		if diff := cmp.Diff(tc.want, FormatWebhookRules(got)); diff != "" {
			t.Errorf("%q allows %q (-want +got):\n%s", tc.allowed, tc.rules, diff)
		}
	}
}

const webhookStream = `apiVersion: meta.pkg.crossplane.io/v1
kind: Provider
metadata: {name: own}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.own.test}
spec:
  group: own.test
  scope: Cluster
  names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ours.apiextensions.crossplane.io}
spec:
  group: apiextensions.crossplane.io
  scope: Cluster
  names: {kind: Our, plural: ours, singular: our, listKind: OurList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: %sWebhookConfiguration
metadata: {name: any}
webhooks:
- name: any.own.test
  admissionReviewVersions: [v1]
  sideEffects: None
  %s
  clientConfig: {service: {name: any, namespace: any}}
  rules: [%s]
`

func objectsOf(t *testing.T, stream string) *Objects {
	t.Helper()
	pkg, err := xpkg.Read([]byte(stream), xpkg.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := Of(pkg, Options{Package: "own", Webhooks: Service{Name: "own", Namespace: "system"}})
	if err != nil {
		t.Fatal(err)
	}
	return objects
}
