package crdvalidation_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/internal/crdvalidation"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
)

const boats = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.schemas.example.org}
spec:
  group: schemas.example.org
  names: {kind: Boat, listKind: BoatList, plural: boats, singular: boat}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [length]
            x-kubernetes-validations:
            - {rule: "!has(self.masts) || self.masts * 5 <= self.length", message: too many masts}
            properties:
              length: {type: integer, minimum: 1, maximum: 500}
              masts: {type: integer}
              color: {type: string, enum: [red, blue], default: red}
              home: {type: string, pattern: "^[a-z]+$", maxLength: 10}
              draft: {x-kubernetes-int-or-string: true}
              flag: {type: string, nullable: true}
              crew:
                type: array
                maxItems: 3
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties:
                    name: {type: string}
                    age: {type: integer, format: int32}
              tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
              labels: {type: object, additionalProperties: {type: string}}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
              template: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
  - name: v0
    served: false
    storage: false
    schema: {openAPIV3Schema: {type: object}}
`

// cases are specs of Boats, and the fields with problems.
var cases = map[string]struct {
	spec string
	want []string
}{
	"valid": {
		`{length: 12, masts: 2, color: blue, home: kiel, draft: 3, crew: [{name: a, age: 4}], tags: [x, z], labels: {a: b}}`,
		nil,
	},
	"minimal":               {`{length: 1}`, nil},
	"empty":                 {`{}`, []string{"spec.length"}},
	"wrong type":            {`{length: long}`, []string{"spec.length"}},
	"fraction":              {`{length: 1.5}`, []string{"spec.length"}},
	"below the minimum":     {`{length: 0}`, []string{"spec.length"}},
	"above the maximum":     {`{length: 501}`, []string{"spec.length"}},
	"not in the enum":       {`{length: 1, color: green}`, []string{"spec.color"}},
	"pattern":               {`{length: 1, home: Kiel}`, []string{"spec.home"}},
	"too long":              {`{length: 1, home: aaaaaaaaaaaaaaaaa}`, []string{"spec.home"}},
	"int or string":         {`{length: 1, draft: "10%"}`, nil},
	"neither":               {`{length: 1, draft: [1]}`, []string{"spec.draft"}},
	"null":                  {`{length: 1, flag: null}`, nil},
	"null that is dropped":  {`{length: 1, color: null}`, nil},
	"null without default":  {`{length: 1, home: null}`, nil},
	"unknown field":         {`{length: 1, lenght: 2}`, []string{"spec.lenght"}},
	"unknown field of item": {`{length: 1, crew: [{name: a, nane: b}]}`, []string{"spec.crew[0].nane"}},
	"unknown field is kept": {`{length: 1, free: {anything: [1]}}`, nil},
	"duplicate key of item": {`{length: 1, crew: [{name: a}, {name: a}]}`, []string{"spec.crew[1]"}},
	"missing key of item":   {`{length: 1, crew: [{age: 1}]}`, []string{"spec.crew[0].name"}},
	"too many items":        {`{length: 1, crew: [{name: a}, {name: b}, {name: c}, {name: d}]}`, []string{"spec.crew"}},
	"duplicate in a set":    {`{length: 1, tags: [a, a]}`, []string{"spec.tags[1]"}},
	"value of a map":        {`{length: 1, labels: {a: 1}}`, []string{"spec.labels.a"}},
	"rule":                  {`{length: 9, masts: 2}`, []string{"spec"}},
	"rule is not evaluated": {`{masts: 2}`, []string{"spec.length"}},
	"embedded": {
		`{length: 1, template: {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {a: b}}}`, nil,
	},
	"embedded without kind": {`{length: 1, template: {apiVersion: v1}}`, []string{"spec.template.kind"}},
	"not an object":         {`[]`, []string{"spec"}},
}

// The result for each resource is the decision of the API server, and names the same fields.
func TestSchemasAgreeWithTheAPIServer(t *testing.T) {
	e := env.New(t)
	raw, err := yaml.YAMLToJSON([]byte(boats))
	if err != nil {
		t.Fatal(err)
	}
	d := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(raw, d); err != nil {
		t.Fatal(err)
	}
	if err := e.Client.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Client.Delete(context.WithoutCancel(t.Context()), d) })
	var s crdvalidation.Schemas
	if err := s.AddCRD(raw, "boats"); err != nil {
		t.Fatal(err)
	}
	dryRun := []client.CreateOption{client.DryRunAll, client.FieldValidation("Strict")}
	wait.Until(t, env.Limit, "the kind is served", func() (string, bool) {
		err := e.Client.Create(t.Context(), boat(t, "first", `{length: 1}`), dryRun...)
		return "", err == nil
	})
	names := map[string]string{"Upper": "metadata.name", "": "metadata.name", "a..b": "metadata.name", "boat": ""}
	for name, field := range names {
		problems := s.Validate(t.Context(), boat(t, name, `{length: 1}`).Object)
		err := e.Client.Create(t.Context(), boat(t, name, `{length: 1}`), dryRun...)
		if (err == nil) != (len(problems) == 0) || (field != "") != (len(problems) > 0) {
			t.Errorf("name %q: got %v, and the API server %v", name, problems, err)
		}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			problems := s.Validate(t.Context(), boat(t, "boat", c.spec).Object)
			err := e.Client.Create(t.Context(), boat(t, "boat", c.spec), dryRun...)
			if (err == nil) != (len(problems) == 0) {
				t.Errorf("got %v, and the API server returned %v", problems, err)
			}
			if got := paths(problems); !cmp.Equal(got, c.want) {
				t.Errorf("got problems of %q, want %q (%v)", got, c.want, problems)
			}
			if causes := causesOf(err); len(causes) > 0 && !cmp.Equal(causes, c.want) {
				t.Errorf("the API server named %q, want %q", causes, c.want)
			}
		})
	}
}

func boat(t *testing.T, name, spec string) *unstructured.Unstructured {
	t.Helper()
	var content any
	if err := yaml.Unmarshal([]byte(spec), &content); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "schemas.example.org/v1", "kind": "Boat",
		"metadata": map[string]any{"name": name, "namespace": "default"}, "spec": content,
	})
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return u
}

func paths(problems []check.Problem) []string {
	var out []string
	for _, p := range problems {
		out = append(out, p.Path)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// causesOf returns the fields that an error of the API server names. Strict field validation names unknown fields in
// its message only.
func causesOf(err error) []string {
	var out []string
	var status apierrors.APIStatus
	if s, ok := err.(apierrors.APIStatus); ok {
		status = s
	}
	if status == nil || status.Status().Details == nil {
		return nil
	}
	for _, c := range status.Status().Details.Causes {
		if c.Field != "" && c.Field != "<nil>" {
			out = append(out, c.Field)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// An XRD defines a composite resource with the fields of the composition engine, and a claim if it has claimNames.
func TestSchemasOfComposites(t *testing.T) {
	const spec = `{"group":"example.org","names":{"kind":"XShip","plural":"xships"},"claimNames":{"kind":"Ship","plural":"ships"},` +
		`"versions":[{"name":"v1","served":true,"referenceable":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","required":["size"],"properties":{"size":{"type":"integer"}}}}}}}]}`
	for name, c := range map[string]struct {
		version, scope, kind, namespace, spec string
		want                                  []string
	}{
		"legacy": {
			"v1", "", "XShip", "", `{"size":1,"compositionRef":{"name":"a"},"resourceRefs":[]}`, nil,
		},
		"legacy, wrong": {"v1", "", "XShip", "", `{"crossplane":{}}`, []string{
			"spec.crossplane", "spec.size",
		}},
		"legacy has no namespace": {"v1", "", "XShip", "a", `{"size":1}`, []string{"metadata.namespace"}},
		"claim":                   {"v1", "", "Ship", "a", `{"size":1,"writeConnectionSecretToRef":{"name":"a"}}`, nil},
		"claim, wrong": {"v1", "", "Ship", "a", `{"size":"1","resourceRefs":[]}`, []string{
			"spec.resourceRefs", "spec.size",
		}},
		"namespaced": {
			"v2", "Namespaced", "XShip", "a", `{"size":1,"crossplane":{"compositionRef":{"name":"a"}}}`, nil,
		},
		"namespaced is the default": {"v2", "", "XShip", "a", `{"size":1}`, nil},
		"namespaced without legacy": {"v2", "", "XShip", "a", `{"size":1,"compositionRef":{"name":"a"}}`, []string{
			"spec.compositionRef",
		}},
		"cluster":                  {"v2", "Cluster", "XShip", "", `{"size":1}`, nil},
		"cluster has no namespace": {"v2", "Cluster", "XShip", "a", `{"size":1}`, []string{"metadata.namespace"}},
		"legacy scope of the newer API": {
			"v2", "LegacyCluster", "Ship", "a", `{"size":1,"compositionRef":{"name":"a"}}`, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var xrd map[string]any
			if err := json.Unmarshal([]byte(`{"apiVersion":"apiextensions.crossplane.io/`+c.version+
				`","kind":"CompositeResourceDefinition","metadata":{"name":"xships.example.org"},"spec":`+spec+
				`}`), &xrd); err != nil {
				t.Fatal(err)
			}
			if c.scope != "" {
				xrd["spec"].(map[string]any)["scope"] = c.scope
			}
			raw, err := json.Marshal(xrd)
			if err != nil {
				t.Fatal(err)
			}
			var s crdvalidation.Schemas
			if err := s.AddXRD(raw, "ships"); err != nil {
				t.Fatal(err)
			}
			u := &unstructured.Unstructured{}
			if err := u.UnmarshalJSON([]byte(`{"apiVersion":"example.org/v1","kind":"` + c.kind +
				`","metadata":{"name":"a"},"spec":` + c.spec + `,"status":{"conditions":[{"type":"Ready"}]}}`)); err != nil {
				t.Fatal(err)
			}
			u.SetNamespace(c.namespace)
			if !s.Has(u.GroupVersionKind()) {
				t.Fatalf("%s has no schema", u.GroupVersionKind())
			}
			if got := paths(s.Validate(t.Context(), u.Object)); !cmp.Equal(got, c.want) {
				t.Errorf("got problems of %q, want %q", got, c.want)
			}
		})
	}
}

// Similar kinds are other versions and other spellings.
func TestSimilarKinds(t *testing.T) {
	raw, err := yaml.YAMLToJSON([]byte(boats))
	if err != nil {
		t.Fatal(err)
	}
	var s crdvalidation.Schemas
	if err := s.AddCRD(raw, "boats"); err != nil {
		t.Fatal(err)
	}
	want := []schema.GroupVersionKind{{Group: "schemas.example.org", Version: "v1", Kind: "Boat"}}
	for _, kind := range []schema.GroupVersionKind{
		{Group: "schemas.example.org", Version: "v0", Kind: "Boat"}, {Group: "example.org", Version: "v1", Kind: "boats"},
	} {
		if got := s.Similar(kind); s.Has(kind) || !cmp.Equal(got, want) {
			t.Errorf("%s: got %v", kind, got)
		}
	}
	if got := s.Similar(schema.GroupVersionKind{Kind: "Car"}); got != nil {
		t.Errorf("got %v", got)
	}
}

// A malicious definition is an error and no panic.
func FuzzSchemas(f *testing.F) {
	raw, err := yaml.YAMLToJSON([]byte(boats))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw, []byte(`{"apiVersion":"schemas.example.org/v1","kind":"Boat","metadata":{"name":"a"},"spec":{"length":1}}`))
	f.Fuzz(func(t *testing.T, definition, resource []byte) {
		var s crdvalidation.Schemas
		if s.AddCRD(definition, "a") != nil && s.AddXRD(definition, "a") != nil {
			return
		}
		u := &unstructured.Unstructured{}
		if u.UnmarshalJSON(resource) == nil && s.Has(u.GroupVersionKind()) {
			s.Validate(t.Context(), u.Object)
		}
	})
}
