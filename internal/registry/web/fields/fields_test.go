package fields_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"pgregory.net/rapid"

	"github.com/xpkg-dev/xpkg/internal/registry/web/fields"
)

// schema returns a schema from JSON.
func schema(t testing.TB, text string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	var s apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

func TestTypesAreInWords(t *testing.T) {
	for text, want := range map[string]string{
		`{"type":"string"}`: "string", `{"type":"object"}`: "object", `{}`: "any", `{"type":"array"}`: "list",
		`{"type":"array","items":{"type":"string"}}`:                                   "list of strings",
		`{"type":"array","items":{"type":"array","items":{"type":"object"}}}`:          "list of lists of objects",
		`{"type":"object","additionalProperties":{"type":"string"}}`:                   "map of strings",
		`{"x-kubernetes-int-or-string":true}`:                                          "integer or string",
		`{"type":"object","x-kubernetes-embedded-resource":true}`:                      "Kubernetes object",
		`{"type":"object","additionalProperties":{"x-kubernetes-int-or-string":true}}`: "map of integers or strings",
		`{"type":"array","items":{}}`:                                                  "list of any values",
	} {
		tree := fields.Tree(schema(t, text))
		if tree.Type != want {
			t.Errorf("%s is a %q, want %q", text, tree.Type, want)
		}
	}
}

func TestConstraintsAreInWords(t *testing.T) {
	for text, want := range map[string]string{
		`{"minLength":1,"maxLength":63}`: "1 to 63 characters", `{"maxLength":1}`: "at most 1 character",
		`{"minLength":2}`: "at least 2 characters", `{"minItems":3,"maxItems":3}`: "exactly 3 items",
		`{"minProperties":1}`: "at least 1 key", `{"minimum":0,"maximum":10}`: "0 to 10",
		`{"minimum":0,"exclusiveMinimum":true}`: "greater than 0", `{"maximum":1.5}`: "at most 1.5",
		`{"minimum":0,"exclusiveMinimum":true,"maximum":1}`: "greater than 0 and at most 1",
		`{"multipleOf":2}`: "a multiple of 2", `{"pattern":"^a$"}`: "matches ^a$", `{"nullable":true}`: "can be null",
		`{"x-kubernetes-list-type":"set"}`:                                        "no item twice",
		`{"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["a","b"]}`: "items are identified by a, b",
		`{"x-kubernetes-map-type":"atomic"}`:                                      "replaced as a whole",
		`{"oneOf":[{"required":["a"]},{"required":["b","c"]}]}`:                   "exactly one of a, b and c",
		`{"anyOf":[{"type":"object"},{"required":["b"]}]}`:                        "at least one of 2 schemas",
		`{"not":{}}`: "must not match a schema",
		`{"type":"array","items":{"type":"string","maxLength":5}}`: "each at most 5 characters",
	} {
		tree := fields.Tree(schema(t, text))
		if got := strings.Join(tree.Constraints, "; "); got != want {
			t.Errorf("%s has the constraints %q, want %q", text, got, want)
		}
	}
}

func TestRulesAreInWords(t *testing.T) {
	for rule, want := range map[string]string{
		"self == oldSelf": "the value cannot be changed", " oldSelf  ==  self ": "the value cannot be changed",
		"has(self.a)": "a is set", "!has(self.a)": "a is not set",
		"has(self.a) || has(self.b)": "a is set or b is set", "has(self.a) && !has(self.b.c)": "a is set and b.c is not set",
		"self.a == 'x'": "a is x", "self > 0": "the value is greater than 0",
		"size(self) <= 5": "the size of the value is at most 5", "self.size() != 0": "the size of the value is not 0",
		"self.a.startsWith('b')": "a starts with b", "self.matches('^a$')": "the value matches ^a$",
		"self == self":                           "the value must satisfy the expression",
		"self.a == oldSelf.a || !has(oldSelf.a)": "a change must satisfy the expression",
		"self.all(x, x > 0)":                     "the value must satisfy the expression",
		"self.a == 'x || y'":                     "a is x || y",
	} {
		tree := fields.Tree(&apiextensionsv1.JSONSchemaProps{Type: "string", XValidations: apiextensionsv1.ValidationRules{{
			Rule: rule,
		}}})
		if got := tree.Rules[0].Words; got != want {
			t.Errorf("%s means %q, want %q", rule, got, want)
		}
		if immutable := want == "the value cannot be changed"; tree.Immutable != immutable {
			t.Errorf("%s makes a field immutable: %t", rule, tree.Immutable)
		}
	}
}

func TestMessagesOfRulesAreUsed(t *testing.T) {
	tree := fields.Tree(&apiextensionsv1.JSONSchemaProps{XValidations: apiextensionsv1.ValidationRules{{
		Rule: "self > 0", Message: "Be positive.",
	}}})
	if want := []fields.Rule{{Words: "Be positive.", Expression: "self > 0"}}; !reflect.DeepEqual(tree.Rules, want) {
		t.Errorf("rules %v, want %v", tree.Rules, want)
	}
}

func TestPathsNameItems(t *testing.T) {
	tree := fields.Tree(schema(
		t,
		`{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","additionalProperties":{"type":"object","properties":{"b":{"type":"string"}}}}}}}`,
	))
	if found := tree.Find(".a[*][*].b"); found == nil || found.Name != "b" || tree.Total != 2 {
		t.Errorf("Find = %v in a tree of %d fields", found, tree.Total)
	}
	if tree.Find(".a[*].b") != nil || tree.Find("") != &tree {
		t.Error("Find returns another field")
	}
}

func TestRequiredFieldsComeFirst(t *testing.T) {
	tree := fields.Tree(schema(
		t,
		`{"required":["z","metadata"],"properties":{"a":{},"z":{},"spec":{"required":["y"],"properties":{"x":{},"y":{}}},"metadata":{},"kind":{}}}`,
	))
	var names []string
	tree.Walk(func(f *fields.Field) { names = append(names, f.Name) })
	if got := strings.Join(names, " "); got != " spec y x z a kind metadata" {
		t.Errorf("order %q", got)
	}
}

func TestSinceIsTheStartOfTheLastRun(t *testing.T) {
	set := func(paths ...string) map[string]bool {
		out := map[string]bool{}
		for _, p := range paths {
			out[p] = true
		}
		return out
	}
	got := fields.Since([]fields.Version{{"v1", set("a", "b")}, {"v2", set("a")}, {"v3", set("a", "b")}, {
		"v4", set("a", "b", "c"),
	}})
	if want := map[string]string{"a": "v1", "b": "v3", "c": "v4"}; !reflect.DeepEqual(got, want) {
		t.Errorf("Since = %v, want %v", got, want)
	}
	if fields.Since(nil) != nil {
		t.Error("no version has fields")
	}
}

// TestDeepSchemasAreLimited checks that the depth of a tree is bounded.
func TestDeepSchemasAreLimited(t *testing.T) {
	s := apiextensionsv1.JSONSchemaProps{Type: "string"}
	for range 5000 {
		s = apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"a": s}}
	}
	tree := fields.Tree(&s)
	depth := 0
	for f := &tree; len(f.Children) > 0; f = &f.Children[0] {
		depth++
	}
	if depth != fields.MaxDepth {
		t.Errorf("depth %d, want %d", depth, fields.MaxDepth)
	}
	lists := apiextensionsv1.JSONSchemaProps{Type: "string"}
	for range 5000 {
		lists = apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &lists}}
	}
	if tree := fields.Tree(&lists); len(tree.Type) > 2000 {
		t.Errorf("the type has %d bytes", len(tree.Type))
	}
}

// TestTotalCountsEveryField compares the totals of random trees with a walk.
func TestTotalCountsEveryField(t *testing.T) {
	var object func(depth int) *rapid.Generator[apiextensionsv1.JSONSchemaProps]
	object = func(depth int) *rapid.Generator[apiextensionsv1.JSONSchemaProps] {
		return rapid.Custom(func(t *rapid.T) apiextensionsv1.JSONSchemaProps {
			s := apiextensionsv1.JSONSchemaProps{Type: rapid.SampledFrom([]string{"object", "string"}).Draw(t, "type")}
			if depth > 0 {
				s.Properties = rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "a.b", "*", "[*]"}), object(depth-1), 0, 3).
					Draw(t, "properties")
			}
			return s
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		s := object(4).Draw(t, "schema")
		tree := fields.Tree(&s)
		tree.Walk(func(f *fields.Field) {
			n := -1
			f.Walk(func(*fields.Field) { n++ })
			if n != f.Total {
				t.Fatalf("%s has %d fields, Total is %d", f.Path, n, f.Total)
			}
		})
	})
}

func TestValuesAreNotEscaped(t *testing.T) {
	tree := fields.Tree(schema(t, `{"type":"string","default":"<a&b>","enum":["<a&b>",">="]}`))
	if got := strings.Join(append(tree.Enum, tree.Default), " "); got != `"<a&b>" ">=" "<a&b>"` {
		t.Errorf("the values are %s", got)
	}
}
