package planner

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	kjson "sigs.k8s.io/json"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
)

// json adds the fields in which two objects differ.
func (d *differences) json(what string, was, is json.RawMessage) {
	if sameJSON(was, is) {
		return
	}
	var before, after map[string]any
	if decode(was, &before) != nil || decode(is, &after) != nil {
		d.text(what, string(was), string(is))
		return
	}
	for _, c := range changedFields("", before, after) {
		*d = append(*d, Difference{"the field " + c.Field + " in " + what, c.Was, c.Is})
	}
}

func decode(raw json.RawMessage, into *map[string]any) error {
	return kjson.UnmarshalCaseSensitivePreserveInts(raw, into)
}

// changedFields returns the fields below a path in which two objects differ.
func changedFields(path string, was, is map[string]any) []SpecChange {
	var out []SpecChange
	keys := slices.Concat(slices.Collect(maps.Keys(was)), slices.Collect(maps.Keys(is)))
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		if reflect.DeepEqual(was[key], is[key]) && stringField(was, key) == stringField(is, key) {
			continue
		}
		before, object := was[key].(map[string]any)
		after, both := is[key].(map[string]any)
		if object && both {
			out = append(out, changedFields(path+key+".", before, after)...)
			continue
		}
		if a, b, same := mappingsOf(was[key], is[key]); same {
			for i := range a {
				out = append(out, changedFields(fmt.Sprintf("%s%s[%d].", path, key, i), a[i], b[i])...)
			}
			continue
		}
		out = append(out, SpecChange{
			Field: path + key, Was: cmp.Or(stringField(was, key), absent), Is: cmp.Or(stringField(is, key), absent),
		})
	}
	return out
}

// mappingsOf returns the elements of two lists, and true if the lists have the same length and only
// contain mappings.
func mappingsOf(was, is any) (a, b []map[string]any, same bool) {
	before, _ := was.([]any)
	after, _ := is.([]any)
	if len(before) == 0 || len(before) != len(after) {
		return nil, nil, false
	}
	for i := range before {
		x, isMapping := before[i].(map[string]any)
		y, both := after[i].(map[string]any)
		if !isMapping || !both {
			return nil, nil, false
		}
		a, b = append(a, x), append(b, y)
	}
	return a, b, true
}

// stringField returns the value of a field: a string as it is, another value as JSON, and "" for a
// missing field.
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

// SpecChange is a field of a package that an operation changes.
type SpecChange struct {
	// Field is the path below spec, such as runtimeConfigRef.name.
	Field string `json:"field"`
	// Was and Is are the values; "absent" if there is none.
	Was string `json:"was"`
	Is  string `json:"is"`
}

// SpecChanges returns the fields of the spec of an installed package that the operation changes,
// except for the package reference.
func (p *Plan) SpecChanges() []SpecChange {
	if p.Operation != Update {
		return nil
	}
	var was, is map[string]any
	if decode(p.Preconditions.Spec, &was) != nil || decode(specIn(p.Package.Object), &is) != nil {
		return nil
	}
	return slices.DeleteFunc(changedFields("", was, is), func(c SpecChange) bool { return c.Field == "package" })
}

// changes returns the fields in which the runtime configuration of the new revision differs
// from the configuration of the running revision.
func (c *runtimeConfigs) changes() []SpecChange {
	if c == nil {
		return nil
	}
	fields := func(config *v1beta1.DeploymentRuntimeConfig) (map[string]any, error) {
		if config == nil {
			return nil, nil
		}
		raw, err := json.Marshal(config.Spec)
		if err != nil {
			return nil, err
		}
		out := map[string]any{}
		return out, decode(raw, &out)
	}
	was, err := fields(c.was)
	if err != nil {
		return nil
	}
	is, err := fields(c.is)
	if err != nil {
		return nil
	}
	return changedFields("", was, is)
}
