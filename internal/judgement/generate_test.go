package judgement_test

import (
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// node is a schema of a random CRD in the form of JSON.
type node = map[string]any

// The small sets of values and names make constraints, values and changes meet.
var (
	texts   = []string{"a", "b", "ab", "2026-01-02"}
	numbers = []int{0, 1, 2, 3}
	names   = []string{"a", "b", "c"}
)

// generator draws schemas, changes of them and objects.
type generator struct{ t *rapid.T }

func (g generator) oneIn(n int) bool { return rapid.IntRange(1, n).Draw(g.t, "one in") == 1 }

func pick[T any](g generator, all ...T) T { return rapid.SampledFrom(all).Draw(g.t, "pick") }

// root returns the schema of a kind.
func (g generator) root() node { return g.object(3, true) }

// schema returns the schema of a field. Rules for changes are only allowed where the API server finds the former value.
func (g generator) schema(depth int, transitions bool) node {
	kinds := []string{"string", "string", "integer", "integer", "boolean", "any", "intOrString"}
	if depth > 0 {
		kinds = append(kinds, "object", "object", "object", "map", "list", "list", "embedded")
	}
	switch kind := pick(g, kinds...); kind {
	case "any":
		return node{"x-kubernetes-preserve-unknown-fields": true}
	case "intOrString":
		return node{"x-kubernetes-int-or-string": true}
	case "embedded":
		return node{
			"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true,
		}
	case "object":
		return g.object(depth-1, transitions)
	case "map":
		s := node{"type": "object", "additionalProperties": g.schema(depth-1, transitions)}
		g.constrain(s, transitions)
		return s
	case "list":
		return g.list(depth-1, transitions)
	default:
		s := node{"type": kind}
		g.constrain(s, transitions)
		return s
	}
}

func (g generator) object(depth int, transitions bool) node {
	properties := node{}
	for _, name := range names {
		if !g.oneIn(4) {
			properties[name] = g.schema(depth, transitions)
		}
	}
	s := node{"type": "object", "properties": properties}
	g.constrain(s, transitions)
	return s
}

func (g generator) list(depth int, transitions bool) node {
	s := node{"type": "array"}
	switch pick(g, "atomic", "set", "map") {
	case "set":
		s["x-kubernetes-list-type"], s["items"] = "set", node{"type": pick(g, "string", "integer")}
	case "map":
		items := g.object(depth, transitions)
		properties := items["properties"].(node)
		keys := []any{"a"}
		properties["a"] = node{"type": "string"}
		if g.oneIn(3) {
			keys, properties["b"] = append(keys, "b"), node{"type": "string"}
		}
		delete(items, "default")
		delete(items, "nullable")
		items["required"] = keys
		s["x-kubernetes-list-type"], s["x-kubernetes-list-map-keys"], s["items"] = "map", keys, items
	default:
		s["items"] = g.schema(depth, false)
	}
	g.constrain(s, transitions)
	return s
}

// constrain replaces the constraints of a schema.
func (g generator) constrain(s node, transitions bool) {
	for _, key := range []string{
		"enum", "pattern", "maxLength", "format", "minimum", "maximum", "maxItems", "maxProperties", "required", "anyOf", "not",
		"allOf", "default", "nullable", "x-kubernetes-validations",
	} {
		if key != "required" || s["x-kubernetes-list-type"] == nil {
			delete(s, key)
		}
	}
	maybe := func(key string, value any) {
		if g.oneIn(5) {
			s[key] = value
		}
	}
	switch s["type"] {
	case "string":
		maybe("enum", toAny(g.some(texts)))
		maybe("pattern", pick(g, "^a", "b$"))
		maybe("maxLength", pick(g, 1, 2))
		maybe("format", "date")
		if len(s) == 1 {
			maybe("default", pick(g, texts...))
		}
	case "integer":
		maybe("minimum", pick(g, 1, 2))
		maybe("maximum", pick(g, 2, 3))
		if len(s) == 1 {
			maybe("default", pick(g, numbers...))
		}
	case "array":
		maybe("maxItems", pick(g, 1, 2))
	case "object":
		maybe("maxProperties", pick(g, 1, 2, 5))
		if has := slices.Sorted(maps.Keys(propertiesOf(s))); len(has) > 0 {
			maybe("required", toAny(g.some(has)))
			maybe("anyOf", []any{node{"required": []any{has[0]}}, node{"required": []any{has[len(has)-1]}}})
			maybe("not", node{"required": []any{pick(g, has...)}})
		}
	}
	if !g.oneIn(3) {
		maybe("nullable", true)
	}
	g.addRules(s, transitions)
}

// addRules adds a rule to a schema or to one of its alternatives.
func (g generator) addRules(s node, transitions bool) {
	if !g.oneIn(4) {
		return
	}
	rules := map[any][]string{
		"string":  {"self != 'a'", "size(self) < 2", "oldSelf == self", "oldSelf != self", "self.matches('^a')"},
		"integer": {"self > 1", "10 / self > 4", "self == oldSelf", "self > oldSelf"},
		"boolean": {"self", "self != oldSelf"},
		"array":   {"size(self) < 2", "size(self) > size(oldSelf)", "self == oldSelf"},
	}[s["type"]]
	if properties := propertiesOf(s); len(properties) > 0 {
		name := pick(g, slices.Sorted(maps.Keys(properties))...)
		rules = []string{
			"has(self." + name + ")", "!has(self." + name + ")", "has(self." + name + ") && !has(oldSelf." + name + ")",
		}
	} else if s["additionalProperties"] != nil {
		rules = []string{"size(self) < 2", "'a' in self", "size(self) != size(oldSelf)"}
	}
	if len(rules) == 0 {
		return
	}
	rule := node{"rule": pick(g, rules...)}
	usesOld := strings.Contains(rule["rule"].(string), "oldSelf")
	if usesOld && !transitions {
		return
	}
	if usesOld && g.oneIn(3) {
		rule["rule"] = "!oldSelf.hasValue() || oldSelf.value() != self"
		rule["optionalOldSelf"] = true
	}
	if g.oneIn(3) {
		s["allOf"] = []any{node{"x-kubernetes-validations": []any{rule}}}
		return
	}
	s["x-kubernetes-validations"] = []any{rule}
}

func (g generator) some(all []string) []string {
	out := rapid.SliceOfNDistinct(rapid.SampledFrom(all), 1, len(all), rapid.ID[string]).Draw(g.t, "some")
	slices.Sort(out)
	return out
}

func toAny(all []string) []any {
	var out []any
	for _, v := range all {
		out = append(out, v)
	}
	return out
}

func propertiesOf(s node) node {
	properties, _ := s["properties"].(node)
	return properties
}

// changed returns a schema with some changes.
func (g generator) changed(s node) node {
	out := clone(s).(node)
	for range rapid.IntRange(1, 3).Draw(g.t, "changes") {
		g.change(out, 3, true)
	}
	return out
}

// change changes a schema or one below it.
func (g generator) change(s node, depth int, transitions bool) {
	properties := propertiesOf(s)
	if items, ok := s["items"].(node); ok && !g.oneIn(3) {
		if s["x-kubernetes-list-type"] == nil {
			g.change(items, depth-1, false)
		}
		return
	}
	if values, ok := s["additionalProperties"].(node); ok && !g.oneIn(3) {
		g.change(values, depth-1, transitions)
		return
	}
	if properties == nil {
		g.constrain(s, transitions)
		return
	}
	name := pick(g, names...)
	field, exists := properties[name].(node)
	switch {
	case !exists:
		properties[name] = g.schema(depth-1, transitions)
	default:
		switch pick(g, "remove", "replace", "below", "below", "constrain") {
		case "remove":
			delete(properties, name)
		case "replace":
			properties[name] = g.schema(depth-1, transitions)
		case "below":
			g.change(field, depth-1, transitions)
			return
		}
	}
	g.constrain(s, transitions)
}

// value returns a value that mostly has the type of a schema.
func (g generator) value(s node) any {
	if s["nullable"] == true && g.oneIn(3) {
		return nil
	}
	switch {
	case s["x-kubernetes-embedded-resource"] == true:
		return node{"apiVersion": "v1", "kind": "A", "metadata": node{"name": "x"}, "a": "a"}
	case s["x-kubernetes-int-or-string"] == true:
		return pick[any](g, "a", 1)
	case s["type"] == nil:
		return pick[any](g, "a", 1, true, node{"a": "a", "z": node{"b": 1}}, []any{"a"})
	case s["enum"] != nil:
		return pick(g, s["enum"].([]any)...)
	}
	switch s["type"] {
	case "string":
		return pick(g, texts...)
	case "integer":
		return pick(g, numbers...)
	case "boolean":
		return pick(g, true, false)
	case "array":
		out := []any{}
		for range rapid.IntRange(0, 2).Draw(g.t, "items") {
			out = append(out, g.value(s["items"].(node)))
		}
		return out
	}
	out := node{}
	if values, ok := s["additionalProperties"].(node); ok {
		for _, name := range names {
			if g.oneIn(2) {
				out[name] = g.value(values)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(propertiesOf(s))) {
		if !g.oneIn(4) {
			out[name] = g.value(propertiesOf(s)[name].(node))
		}
	}
	return out
}

// clone returns a deep copy of a value of JSON.
func clone(v any) any {
	switch v := v.(type) {
	case node:
		out := node{}
		for key, value := range v {
			out[key] = clone(value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, value := range v {
			out[i] = clone(value)
		}
		return out
	}
	return v
}
