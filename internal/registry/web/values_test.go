package web_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/registry/web/folder"
	"github.com/xpkg-dev/xpkg/internal/registry/web/webtest"
	"github.com/xpkg-dev/xpkg/internal/testing/publish"
)

// TestValuesOfSchemasAreExact shows integers that no floating-point number can represent, and characters that YAML
// encoders refuse.
func TestValuesOfSchemasAreExact(t *testing.T) {
	const exact = "9007199254740993"
	crd := publish.Definition("exact.example.org", "Count", `"a\u007fb\uffffc\u0085d"`)
	crd = strings.Replace(crd, "spec: {type: object, x-kubernetes-preserve-unknown-fields: true}",
		"spec: {type: object, required: [size], properties: {size: {type: integer, format: int64, enum: ["+exact+
			"]}, limit: {type: integer, format: int64, default: "+exact+"}}}", 1)
	stream := "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: counts}\nspec:\n  controller: {image: example.org/x:v1}\n" +
		crd
	h := newHandler(
		t, []folder.Version{webtest.Version(t, "acme/counts", "v1.0.0", time.Unix(1e9, 0), stream)}, webtest.Options(),
	)
	for path, want := range map[string]int{
		// The example has the allowed value.
		"/k/exact.example.org/Count":                                                    3,
		"/schemas/exact.example.org/count_v1.json":                                      2,
		"/api/v1/kinds/exact.example.org/Count/v1":                                      2,
		"/p/registry.example.org/acme/counts@v1.0.0/k/exact.example.org/Count/crd.yaml": 2,
	} {
		body := get(t, h, path, http.StatusOK).Body.String()
		if got := strings.Count(body, exact); got < want || strings.Contains(body, "9007199254740992") {
			t.Errorf("%s has %s %d times, want %d:\n%s", path, exact, got, want, body)
		}
	}
	crdYAML := get(t, h, "/p/registry.example.org/acme/counts@v1.0.0/k/exact.example.org/Count/crd.yaml", http.StatusOK).
		Body.String()
	if !strings.Contains(crdYAML, `a\u007fb\uffffc\u0085d`) {
		t.Errorf("the definition has not the characters of its description:\n%s", crdYAML)
	}
}

// TestSchemasRequireFieldsWithoutDefaults checks that a schema accepts the manifests that an API server accepts: it
// adds fields with defaults.
func TestSchemasRequireFieldsWithoutDefaults(t *testing.T) {
	crd := strings.Replace(publish.Definition("acme.example.org", "Boat", "A boat."),
		"spec: {type: object, x-kubernetes-preserve-unknown-fields: true}",
		"spec: {type: object, required: [size, mode], properties: {size: {type: integer}, mode: {type: string, default: sail}, "+
			"crew: {type: object, required: [count], properties: {count: {type: integer, default: 1}}}}}", 1)
	stream := "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: boats}\nspec:\n  controller: {image: example.org/x:v1}\n" +
		crd
	h := newHandler(
		t, []folder.Version{webtest.Version(t, "acme/boats", "v1.0.0", time.Unix(1e9, 0), stream)}, webtest.Options(),
	)
	var schema struct {
		Required   []string
		Properties struct {
			Spec struct {
				Required   []string
				Properties struct{ Crew struct{ Required []string } }
			}
		}
	}
	if err := json.Unmarshal(
		get(t, h, "/schemas/acme.example.org/boat_v1.json", http.StatusOK).Body.Bytes(), &schema,
	); err != nil {
		t.Fatal(err)
	}
	spec := schema.Properties.Spec
	if !slices.Contains(schema.Required, "apiVersion") || !slices.Contains(schema.Required, "kind") ||
		!slices.Equal(spec.Required, []string{"size"}) || spec.Properties.Crew.Required != nil {
		t.Errorf("the required fields are %+v", schema)
	}
}

// TestSchemasHaveExclusiveLimitsAsNumbers checks the limits of fields and of rules: a schema of draft 7 with a boolean
// is not valid.
func TestSchemasHaveExclusiveLimitsAsNumbers(t *testing.T) {
	crd := strings.Replace(publish.Definition("acme.example.org", "Boat", "A boat."),
		"spec: {type: object, x-kubernetes-preserve-unknown-fields: true}",
		"spec: {type: object, properties: {size: {type: number, minimum: 2, exclusiveMinimum: true, maximum: 9, exclusiveMaximum: false}}, "+
			"anyOf: [{properties: {size: {maximum: 5, exclusiveMaximum: true}}}, {not: {properties: {size: {minimum: 7, exclusiveMinimum: true}}}}]}",
		1)
	stream := "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: boats}\nspec:\n  controller: {image: example.org/x:v1}\n" +
		crd
	h := newHandler(
		t, []folder.Version{webtest.Version(t, "acme/boats", "v1.0.0", time.Unix(1e9, 0), stream)}, webtest.Options(),
	)
	text := get(t, h, "/schemas/acme.example.org/boat_v1.json", http.StatusOK).Body.String()
	compact := strings.Join(strings.Fields(text), "")
	for _, want := range []string{
		`"size":{"exclusiveMinimum":2,"maximum":9,"type":"number"}`, `"size":{"exclusiveMaximum":5}`,
		`"not":{"properties":{"size":{"exclusiveMinimum":7}}}`,
	} {
		if !strings.Contains(compact, want) {
			t.Errorf("the schema lacks %s:\n%s", want, text)
		}
	}
}
