package web

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const berths = `
group: example.org
scope: Namespaced
names: {kind: Berth, plural: berths}
conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {name: a, namespace: a}}}}
versions:
- name: v1
  served: true
  storage: true
  schema: {openAPIV3Schema: {type: object, properties: {size: {type: integer, maximum: 9, x-kubernetes-validations: [{rule: self > 1, message: a}]}}}}
`

func TestSchemasOfProvidersAreComparedByTheirObjects(t *testing.T) {
	read := func(text string) *definition {
		d := &definition{}
		if err := yaml.UnmarshalStrict([]byte(text), &d.crd.Spec); err != nil {
			t.Fatal(err)
		}
		return d
	}
	for name, tc := range map[string]struct{ from, to, want string }{
		"equal":         {"", "", "equal"},
		"documentation": {"type: integer,", "type: integer, description: text,", "equal"},
		"webhook":       {"name: a,", "name: b,", "equal"},
		"message":       {"message: a", "message: b", "equal"},
		"deprecated":    {"  served: true", "  deprecated: true\n  served: true", "equal"},
		"rule":          {"self > 1", "self > 2", "different"},
		"looser":        {"maximum: 9", "maximum: 10", "superset"},
		"stricter":      {"maximum: 9", "maximum: 8", "different"},
	} {
		t.Run(name, func(t *testing.T) {
			to := strings.Replace(berths, tc.from, tc.to, 1)
			if got, n := compareSchemas(read(berths), read(to)); got != tc.want || (n == 0) != (tc.want == "equal") {
				t.Errorf("%s with %d changes, want %s", got, n, tc.want)
			}
		})
	}
}
