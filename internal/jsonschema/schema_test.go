package jsonschema

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type inner struct {
	Shared string `json:"shared"`
}

type outer struct {
	*inner
	Text     string          `json:"text"`
	Maybe    int64           `json:"maybe,omitempty"`
	Zero     time.Time       `json:"zero,omitzero"`
	List     []inner         `json:"list"`
	Map      map[string]bool `json:"map,omitempty"`
	Raw      json.RawMessage `json:"raw,omitempty"`
	Pointer  *inner          `json:"pointer,omitempty"`
	Any      any             `json:"any"`
	Floats   []float64       `json:"floats,omitempty"`
	Hidden   string          `json:"-"`
	Untagged bool
	private  map[string]string //nolint:unused // The schema omits it.
}

func TestSchemaDescribesTheEncodingOfAType(t *testing.T) {
	shared := &Schema{Type: "object", Properties: map[string]*Schema{"shared": {Type: "string"}}, Required: []string{
		"shared",
	}}
	want := &Schema{
		Schema: dialect, Title: "title", Description: "text", Type: "object",
		Required: []string{"shared", "text", "list", "any", "Untagged"},
		Properties: map[string]*Schema{
			"shared": {Type: "string"}, "text": {Type: "string"}, "maybe": {Type: "integer"},
			"zero": {Type: "string", Format: "date-time"},
			"list": {Type: []string{"array", "null"}, Items: shared},
			"map":  {Type: "object", AdditionalProperties: &Schema{Type: "boolean"}},
			"raw":  {}, "pointer": shared, "any": {}, "floats": {Type: "array", Items: &Schema{Type: "number"}},
			"Untagged": {Type: "boolean"},
		},
	}
	got, err := Of(reflect.TypeFor[outer](), "title", "text")
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

type list struct {
	Next *list `json:"next"`
}

func TestTypesWithoutASchemaAreRefused(t *testing.T) {
	for _, kind := range []reflect.Type{
		reflect.TypeFor[list](), reflect.TypeFor[struct{ F func() }](), reflect.TypeFor[[]chan int](),
	} {
		if _, err := Of(kind, "", ""); err == nil {
			t.Errorf("%s has a schema", kind)
		}
	}
}
