package planner

import (
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	kjson "sigs.k8s.io/json"
)

// json returns the fields in which two objects differ.
func (d *differences) json(what string, was, is json.RawMessage) {
	if sameJSON(was, is) {
		return
	}
	var before, after map[string]any
	if decode(was, &before) != nil || decode(is, &after) != nil {
		d.text(what, string(was), string(is))
		return
	}
	d.fields("", what, before, after)
}

func decode(raw json.RawMessage, into *map[string]any) error {
	return kjson.UnmarshalCaseSensitivePreserveInts(raw, into)
}

// fields returns the differences of two objects below a path.
func (d *differences) fields(path, of string, was, is map[string]any) {
	keys := slices.Concat(slices.Collect(maps.Keys(was)), slices.Collect(maps.Keys(is)))
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		if reflect.DeepEqual(was[key], is[key]) && stringField(was, key) == stringField(is, key) {
			continue
		}
		before, object := was[key].(map[string]any)
		after, both := is[key].(map[string]any)
		if object && both {
			d.fields(path+key+".", of, before, after)
			continue
		}
		*d = append(*d, Difference{path + key + " in " + of, cmp.Or(stringField(was, key), absent), cmp.Or(stringField(is, key), absent)})
	}
}

// stringField returns the value of a string field; "" if the field is missing.
func stringField(object map[string]any, key string) string {
	value, there := object[key]
	if text, ok := value.(string); ok && text != "" || !there {
		return text
	}
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err) // Decoded JSON can always be encoded.
	}
	return string(raw)
}
