package xpkg

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const tagged = `
apiVersion: v1
kind: K
metadata:
  name: o
  annotations: {a: b, number: 1, nothing: null, "quo\"te": "li\nne"}
  labels: {l: "", deep: {x: y}}
  other: {labels: {no: "no"}}
spec: {metadata: {labels: {no: "no"}}}
`

// Only the labels and annotations of the object itself count.
func TestSummaryLabels(t *testing.T) {
	for text, want := range map[string]Summary{
		tagged: {Labels: map[string]string{"l": ""}, Annotations: map[string]string{
			"a": "b", "quo\"te": "li\nne",
		}},
		"{apiVersion: v1, kind: K}":                                           {},
		"{apiVersion: v1, kind: K, metadata: null, spec: {labels: {a: b}}}":   {},
		"{apiVersion: v1, kind: K, metadata: [labels]}":                       {},
		"{apiVersion: v1, kind: K, metadata: {labels: null, annotations: 1}}": {},
		"{apiVersion: v1, kind: K, metadata: {labels: {}, annotations: []}}":  {},
		"{apiVersion: v1, kind: K, metadata: {name: x, labels: {b: c}, zlabels: {d: e}}}": {Labels: map[string]string{
			"b": "c",
		}},
	} {
		json, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, readLabels(json)); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}
