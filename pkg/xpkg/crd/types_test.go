package crd_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/internal/crdvalidation"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/crd"
)

// untypedSchema is a schema that v1beta1 accepted.
const untypedSchema = `{"properties": {
  "apiVersion": {}, "metadata": {}, "status": {"additionalProperties": {"items": {"properties": {"a": {"type": "string"}}}}},
  "spec": {"properties": {
    "object": {"properties": {"a": {"type": "string"}}},
    "list": {"items": {"enum": ["a", "b"]}},
    "numbers": {"enum": [1, 2.5]}, "integers": {"enum": [1, 2]}, "switch": {"enum": [true]},
    "port": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
    "open": {"type": "array"},
    "any": {"description": "any value"},
    "choice": {"oneOf": [{"type": "string"}, {"type": "object"}]},
    "kept": {"x-kubernetes-preserve-unknown-fields": true},
    "embedded": {"x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}
  }}
}}`

func TestSchemasOfVersion1Beta1GetTheTypesThatTheyImply(t *testing.T) {
	for _, preserve := range []string{"true", "false"} {
		text := `{"metadata":{"name":"things.example.org"},"spec":{"preserveUnknownFields":` + preserve +
			`,"group":"example.org","names":{"kind":"Thing","plural":"things"},"scope":"Cluster","version":"v1","validation":{"openAPIV3Schema":` +
			untypedSchema + `}}}`
		converted, untyped, err := crd.ConvertV1Beta1([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"v1.spec.any", "v1.spec.choice", "v1.spec.numbers", "v1.spec.open[*]"}
		if diff := cmp.Diff(want, untyped); diff != "" {
			t.Errorf("fields without a type (-want +got)\n%s", diff)
		}
		if p := crdvalidation.ValidateCRD(converted); len(p) > 0 {
			t.Errorf("an API server refuses it: %v", p)
		}
		var got struct {
			Spec struct {
				Versions []struct {
					Schema struct{ OpenAPIV3Schema json.RawMessage }
				}
			}
		}
		if err := json.Unmarshal(converted, &got); err != nil {
			t.Fatal(err)
		}
		schema := string(got.Spec.Versions[0].Schema.OpenAPIV3Schema)
		for _, part := range []string{
			`"apiVersion":{"type":"string"}`, `"metadata":{"type":"object"}`,
			`"list":{"items":{"enum":["a","b"],"type":"string"},"type":"array"}`,
			`"integers":{"enum":[1,2],"type":"integer"}`, `"switch":{"enum":[true],"type":"boolean"}`,
			`"port":{"anyOf":[{"type":"integer"},{"type":"string"}],"x-kubernetes-int-or-string":true}`,
			`"any":{"description":"any value","x-kubernetes-preserve-unknown-fields":true}`,
			`"choice":{"x-kubernetes-preserve-unknown-fields":true}`,
		} {
			if !strings.Contains(schema, part) {
				t.Errorf("the schema does not contain %s: %s", part, schema)
			}
		}
	}
}
