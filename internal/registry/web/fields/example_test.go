package fields_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/registry/web/fields"
)

func TestExamplesHaveTheRequiredFieldsInTheirLimits(t *testing.T) {
	for field, want := range map[string]string{
		`{"type":"string"}`: `"example"`, `{"type":"string","maxLength":3}`: `"exa"`,
		`{"type":"string","minLength":9}`:            `"exampleaa"`,
		`{"type":"string","enum":["","low","high"]}`: `"low"`,
		`{"type":"string","format":"date-time"}`:     `"2026-01-01T00:00:00Z"`,
		`{"type":"string","pattern":"^[0-9]+s$"}`:    `"60s"`, `{"type":"integer"}`: `1`,
		`{"type":"integer","minimum":3}`: `3`, `{"type":"integer","maximum":0}`: `0`,
		`{"type":"integer","minimum":3,"exclusiveMinimum":true}`: `4`, `{"type":"integer","multipleOf":5}`: `5`,
		`{"type":"number","maximum":0.5,"multipleOf":0.25}`: `0.5`,
		`{"type":"boolean"}`: `true`, `{"x-kubernetes-int-or-string":true}`: `1`, `{"type":"object"}`: `{}`,
		`{"x-kubernetes-preserve-unknown-fields":true}`:            `{}`,
		`{"type":"array","items":{"type":"string"}}`:               `["example"]`,
		`{"type":"array","items":{"type":"integer"},"minItems":2}`: `[1,1]`, `{"type":"array","maxItems":0,"items":{}}`: `[]`,
		`{"type":"object","additionalProperties":{"type":"string"},"minProperties":1}`:                              `{"key":"example"}`,
		`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["b"]}`:             `{"b":"example"}`,
		`{"type":"object","properties":{"a":{"type":"string","default":"x"}},"required":["a"]}`:                     `{}`,
		`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"oneOf":[{"required":["a"]}]}`: `{"a":"example"}`,
		`{"type":"object","properties":{"a":{"type":"string"}},"minProperties":1}`:                                  `{"a":"example"}`,
		`{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}`:       `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"example"}}`,
	} {
		text := `{"type":"object","required":["spec","apiVersion"],"properties":{"apiVersion":{"type":"string"},"spec":{"type":"object","required":["f"],"properties":{"f":` +
			field + `}}}}`
		got, err := json.Marshal(fields.Example(schema(t, text), nil))
		if err != nil {
			t.Fatal(err)
		}
		if want := `{"spec":{"f":` + want + `}}`; string(got) != want {
			t.Errorf("%s: %s, want %s", field, got, want)
		}
	}
}

func TestExamplesHaveTheParametersThatRulesRequire(t *testing.T) {
	got, err := json.Marshal(fields.Example(schema(t, `{"type":"object","properties":{"spec":{"type":"object",
		"properties":{"forProvider":{"type":"object","properties":{"region":{"type":"string"},"rule":{"type":"object","properties":{"name":{"type":"string"},"size":{"type":"integer"}}}}}},
		"x-kubernetes-validations":[{"rule":"has(self.forProvider.region)","message":"region is a required parameter"},
			{"rule":"has(self.forProvider.rule.name)","message":"spec.forProvider.rule.name is a required parameter"}]}}}`), nil))
	if want := `{"spec":{"forProvider":{"region":"example","rule":{"name":"example"}}}}`; err != nil ||
		string(got) != want {
		t.Errorf("got %s (%v), want %s", got, err, want)
	}
}

func TestNoExampleIsMadeOfAValueThatIsNotKnown(t *testing.T) {
	for _, field := range []string{
		`{"type":"string","pattern":"^unusual!$"}`, `{"type":"string","pattern":"("}`, `{"type":"string","minLength":100000}`,
		`{"enum":[null]}`, `{}`,
		`{"type":"array","items":{"type":"string"},"minItems":100000}`, `{"type":"object","minProperties":2}`,
	} {
		if got := fields.Example(
			schema(t, `{"type":"object","required":["f"],"properties":{"f":`+field+`}}`), nil,
		); got != nil {
			t.Errorf("%s: %v", field, got)
		}
	}
}

func TestExamplesHaveAnOptionalFieldOnRequest(t *testing.T) {
	s := schema(t, `{"type":"object","properties":{"spec":{"type":"object","required":["list"],"properties":{"a":{"type":"string"},
		"list":{"type":"array","items":{"type":"object","required":["b"],"properties":{"b":{"type":"string"},"c":{"type":"integer"},"d":{"type":"boolean","default":true}}}}}}}}`)
	for text, want := range map[string]string{
		"spec": `[["spec","a"]]`, "spec list": `[["spec","list","c"],["spec","list","d"]]`, "spec missing": `null`,
		"spec a b": `null`,
	} {
		if got, err := json.Marshal(fields.Optional(s, strings.Fields(text))); err != nil || string(got) != want {
			t.Errorf("the optional fields at %s are %s, want %s", text, got, want)
		}
	}
	for also, want := range map[string]string{
		"": `{"spec":{"list":[{"b":"example"}]}}`, "spec a": `{"spec":{"a":"example","list":[{"b":"example"}]}}`,
		"spec list c": `{"spec":{"list":[{"b":"example","c":1}]}}`,
		"spec list d": `{"spec":{"list":[{"b":"example","d":true}]}}`,
	} {
		if got, err := json.Marshal(fields.Example(s, strings.Fields(also))); err != nil || string(got) != want {
			t.Errorf("with %s: %s, want %s", also, got, want)
		}
	}
}
