package xpkg

import (
	"encoding/json"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/yamldoc"
)

func TestReadHeader(t *testing.T) {
	for in, want := range map[string]header{
		`{"apiVersion":"v1","kind":"K","metadata":{"name":"n"}}`: {
			apiVersion: "v1", kind: "K", name: "n", kindAt: 26,
		},
		`{"apiVersion":"a/v1","data":{"kind":"x"},"kind":"K","metadata":{"annotations":{"a":"}"},"name":"n"},"z":1}`: {
			apiVersion: "a/v1", kind: "K", name: "n", kindAt: 48,
		},
		`{"a":[1,{"b":"]"}],"apiVersion":"v1","kind":"K"}`:     {apiVersion: "v1", kind: "K", kindAt: 44},
		`{"apiVersion":"v1","kind":"K","metadata":[]}`:         {apiVersion: "v1", kind: "K", kindAt: 26},
		`{"apiVersion":"v1","kind":"K","metadata":{"name":7}}`: {apiVersion: "v1", kind: "K", kindAt: 26},
		`{"apiVersion":"v1","kind":"\"\\\n","metadata":{"name":"a\"b"}}`: {
			apiVersion: "v1", kind: "\"\\\n", name: `a"b`, kindAt: 26,
		},
	} {
		got, f := readHeader([]byte(in))
		if f != nil || got != want {
			t.Errorf("%s: got %+v, %v", in, got, f)
		}
	}
	for in, want := range map[string]string{
		`[]`: "the document is not a mapping", `"a"`: "the document is not a mapping",
		`null`:                          "the document is not a mapping",
		`{}`:                            "the document has neither apiVersion nor kind",
		`{"kind":"K"}`:                  "the document has no apiVersion",
		`{"apiVersion":"v1"}`:           "the document has no kind",
		`{"apiVersion":"v1","kind":1}`:  "the document has no kind",
		`{"apiVersion":[],"kind":"K"}`:  "the document has no apiVersion",
		`{"apiVersion":"v1","kind":""}`: "the document has no kind",
	} {
		if _, f := readHeader([]byte(in)); f == nil || f.What != want {
			t.Errorf("%s: got %v, want %s", in, f, want)
		}
	}
}

// FuzzHeader compares the walk over canonical JSON with a decoder.
func FuzzHeader(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"v1","kind":"K","metadata":{"labels":{"a":"{"},"name":"n"},"spec":[1,true,"\""]}`))
	f.Add([]byte("{apiVersion: v1, kind: K, metadata: {name: 'n'}}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		canonical, _, err := yamldoc.NewReader(yamldoc.Limits{Depth: 50, Nodes: 1000}).JSON(append(text, '\n'))
		if err != nil {
			return
		}
		var want struct {
			APIVersion any `json:"apiVersion"`
			Kind       any `json:"kind"`
		}
		var object map[string]json.RawMessage
		isObject := json.Unmarshal(canonical, &object) == nil && object != nil
		if isObject {
			_ = json.Unmarshal(object["apiVersion"], &want.APIVersion)
			_ = json.Unmarshal(object["kind"], &want.Kind)
		}
		got, fault := readHeader(canonical)
		apiVersion, _ := want.APIVersion.(string)
		kind, _ := want.Kind.(string)
		if ok := isObject && apiVersion != "" && kind != ""; ok != (fault == nil) {
			t.Fatalf("%s: %v", canonical, fault)
		}
		if fault == nil && (got.apiVersion != apiVersion || got.kind != kind) {
			t.Fatalf("%s: got %+v", canonical, got)
		}
	})
}
