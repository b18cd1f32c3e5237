package composition

import (
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestOnlyPipelinesAreCompositions(t *testing.T) {
	const head = "apiVersion: apiextensions.crossplane.io/v1\nkind: Composition\nmetadata: {name: c}\nspec:\n  compositeTypeRef: {apiVersion: a.b/v1, kind: X}\n"
	for text, want := range map[string]string{
		head + "  mode: Pipeline\n  pipeline: [{step: a, functionRef: {name: f}}, {step: b, functionRef: {name: f}}]": "",
		head + "  resources: []": "has no pipeline", head + "  mode: Pipeline": "has no pipeline",
		head +
			"  mode: Pipeline\n  pipeline: [{functionRef: {name: f}}]": "spec.pipeline[0].step",
		head +
			"  mode: Pipeline\n  pipeline: [{step: a}]": "no function in the step a",
		head +
			"  mode: Pipeline\n  pipeline: [{step: a, functionRef: {name: f}}, {step: a, functionRef: {name: f}}]": "two steps a",
		"apiVersion: v1\nkind: ConfigMap": "contains ConfigMap of v1", "spec: 1": "cannot read",
	} {
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		c, err := Parse(raw, "c.yaml")
		if want == "" {
			if err != nil || len(c.Functions()) != 1 {
				t.Error(err, c)
			}
		} else if !errors.Is(err, ErrCompositionInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

func TestCompositionIsSelectedAsByCrossplane(t *testing.T) {
	of := func(name, kind, label string) Composition {
		c := Composition{}
		c.Name, c.Labels = name, map[string]string{"size": label}
		c.Spec.CompositeTypeRef.APIVersion, c.Spec.CompositeTypeRef.Kind = "acme.example.org/v1", kind
		return c
	}
	all := []Composition{of("large", "Fleet", "l"), of("small", "Fleet", "s"), of("other", "Raft", "l")}
	const xr = "apiVersion: acme.example.org/v1\nkind: Fleet\nmetadata: {name: north}\nspec: "
	for name, c := range map[string]struct {
		spec string
		d    Definition
		flag string
		all  []Composition
		want string
	}{
		"the only one":            {"{}", Definition{}, "", all[1:], "small"},
		"by reference":            {"{compositionRef: {name: large}}", Definition{Default: "small"}, "", all, "large"},
		"by the modern reference": {"{crossplane: {compositionRef: {name: large}}}", Definition{}, "", all, "large"},
		"by labels": {
			"{crossplane: {compositionSelector: {matchLabels: {size: s}}}}", Definition{Default: "large"}, "", all, "small",
		},
		"the default":      {"{}", Definition{Default: "small"}, "", all, "small"},
		"the enforced one": {"{compositionRef: {name: large}}", Definition{Enforced: "small"}, "", all, "small"},
		"by the flag": {
			"{compositionRef: {name: large}}", Definition{Enforced: "large"}, "small", all, "small",
		},
		"several": {"{}", Definition{}, "", all, "error: there are 2 compositions"},
		"a reference to another": {
			"{compositionRef: {name: other}}", Definition{}, "", all, "error: there is no composition other for Fleet",
		},
		"labels of none": {
			"{compositionSelector: {matchLabels: {size: x}}}", Definition{}, "", all,
			"error: no composition for Fleet of acme.example.org/v1 has the labels",
		},
		"no composition of the kind": {"{}", Definition{}, "", all[2:], "error: there is no composition for Fleet"},
		"none":                       {"{}", Definition{}, "", nil, "error: there is no composition for Fleet"},
	} {
		got, err := Select(parse(xr+c.spec), c.all, c.d, c.flag)
		if text, fails := strings.CutPrefix(c.want, "error: "); fails {
			if !errors.Is(err, ErrCompositionInvalid) || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: got %v", name, err)
			}
		} else if err != nil || got.Name != c.want {
			t.Errorf("%s: got %s, %v", name, got.Name, err)
		}
	}
}
