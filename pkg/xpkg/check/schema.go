package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A schema describes a value of an object, as the OpenAPI schemas of CRDs do: types, required
// fields, allowed words, limits, and the key of a list. It accepts unknown fields, which an API
// server drops, and null.
type schema struct {
	kind     kind
	fields   map[string]*schema
	required []string
	// items is the schema of the elements of a list, and of the values of a map.
	items *schema
	// words lists the allowed values of a string.
	words []string
	// key is the field whose values are unique among the elements of a list.
	key string
	// limited means that a number, or the length of a list, is within least and most.
	limited     bool
	least, most int64
}

type kind string

const (
	anything kind = "a value"
	object   kind = "a mapping"
	mapping  kind = "a mapping " // with any keys
	list     kind = "a list"
	text     kind = "a string"
	integer  kind = "an integer"
	boolean  kind = "a boolean"
)

type fields = map[string]*schema

var (
	anyValue  = &schema{kind: anything}
	aString   = &schema{kind: text}
	anInteger = &schema{kind: integer}
	aBoolean  = &schema{kind: boolean}
	anObject  = &schema{kind: object}
	stringMap = &schema{kind: mapping, items: aString}
)

// mappingOf returns the schema of a mapping. Required names the required fields, separated by
// spaces.
func mappingOf(required string, f fields) *schema {
	return &schema{kind: object, fields: f, required: strings.Fields(required)}
}

// listOf returns the schema of a list.
func listOf(items *schema) *schema { return &schema{kind: list, items: items} }

// uniqueListOf returns the schema of a list whose elements differ in a field.
func uniqueListOf(key string, items *schema) *schema {
	return &schema{kind: list, items: items, key: key}
}

// oneOf returns the schema of a string with one of the values.
func oneOf(words ...string) *schema { return &schema{kind: text, words: words} }

// within returns the schema with limits for a number or the length of a list.
func (s *schema) within(least, most int64) *schema {
	out := *s
	out.limited, out.least, out.most = true, least, most
	return &out
}

// check returns the problems of a value at a path.
func (s *schema) check(path string, value any) []Problem {
	if value == nil || s.kind == anything {
		return nil
	}
	problem := func(format string, args ...any) []Problem {
		return []Problem{{Path: path, Message: fmt.Sprintf(format, args...)}}
	}
	mismatch := func() []Problem {
		return problem("%s is expected, not %s", strings.TrimSpace(string(s.kind)), kindOf(value))
	}
	switch v := value.(type) {
	case map[string]any:
		if s.kind != object && s.kind != mapping {
			return mismatch()
		}
		return s.checkFields(path, v)
	case []any:
		if s.kind != list {
			return mismatch()
		}
		return s.checkItems(path, v)
	case string:
		switch {
		case s.kind != text:
			return mismatch()
		case len(s.words) > 0 && !slices.Contains(s.words, v):
			return problem("%.60q is none of %s", v, strings.Join(s.words, ", "))
		}
	case bool:
		if s.kind != boolean {
			return mismatch()
		}
	case int64:
		switch {
		case s.kind != integer:
			return mismatch()
		case s.limited && (v < s.least || v > s.most):
			return problem("%d is not between %d and %d", v, s.least, s.most)
		}
	default:
		// A number such as 1.0 can be an integer for an API server.
		if s.kind != integer {
			return mismatch()
		}
	}
	return nil
}

func (s *schema) checkFields(path string, value map[string]any) []Problem {
	var out []Problem
	for _, name := range s.required {
		if _, ok := value[name]; !ok {
			out = append(out, Problem{Path: join(path, name), Message: "is required"})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(value)) {
		field := s.fields[name]
		if s.kind == mapping {
			field = s.items
		}
		if field != nil {
			out = append(out, field.check(join(path, name), value[name])...)
		}
	}
	return out
}

func (s *schema) checkItems(path string, value []any) []Problem {
	var out []Problem
	if n := int64(len(value)); s.limited && (n < s.least || n > s.most) {
		out = append(out, Problem{
			Path: path, Message: fmt.Sprintf("has %d elements, not between %d and %d", n, s.least, s.most),
		})
	}
	seen := map[string]bool{}
	for i, item := range value {
		at := fmt.Sprintf("%s[%d]", path, i)
		out = append(out, s.items.check(at, item)...)
		m, _ := item.(map[string]any)
		name, ok := m[s.key].(string)
		if ok && seen[name] {
			out = append(out, Problem{Path: join(at, s.key), Message: fmt.Sprintf("%.60q occurs twice", name)})
		}
		seen[name] = true
	}
	return out
}

func kindOf(value any) string {
	switch value.(type) {
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	}
	return "a number"
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
