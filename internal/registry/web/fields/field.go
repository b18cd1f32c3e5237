package fields

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// MaxDepth is the maximum depth of a tree. Deeper fields are counted, not described.
const MaxDepth = 64

// AnyItem is the path element of the items of a list and the values of a map.
const AnyItem = "[*]"

type props = apiextensionsv1.JSONSchemaProps

// A Field is a field of an object, or the object itself.
type Field struct {
	// Name is the name of the field; empty for the object itself.
	Name string
	// Path is the path of the field, such as .spec.tags[*].key; empty for the object itself.
	Path string
	// Type is the type in words, such as "string", "list of objects" or "map of strings".
	Type string
	// Format is the format of a string or number, such as date-time.
	Format      string
	Description string
	// Required reports that the parent must have the field. RequiredToCreate reports that a rule requires the field
	// unless the object only observes an external resource.
	Required, RequiredToCreate bool
	// Default is the default as JSON; empty if there is none.
	Default string
	// Enum are the allowed values as JSON.
	Enum []string
	// Constraints are the limits of the value in words, such as "at most 63 characters".
	Constraints []string
	// Rules are the validation rules of the field.
	Rules []Rule
	// Immutable reports that a rule forbids changes.
	Immutable bool
	// Deprecated reports that the description calls the field deprecated.
	Deprecated bool
	// Open reports that the field accepts fields without a schema.
	Open bool
	// Children are the fields of an object, or of the objects in a list or map, required fields first. The fields of the
	// object itself start with spec and end with apiVersion, kind and metadata.
	Children []Field
	// Total is the number of all fields below this one.
	Total int
}

// Tree returns the fields of a schema. A nil schema accepts every object.
func Tree(schema *props) Field {
	if schema == nil {
		return Field{Type: "object", Open: true}
	}
	root := describe("", "", schema, 0)
	markRequiredParameters(&root)
	return root
}

// Find returns the field with the path, or nil if there is none.
func (f *Field) Find(path string) *Field {
	if f.Path == path {
		return f
	}
	for i := range f.Children {
		c := &f.Children[i]
		if rest, ok := strings.CutPrefix(path, c.Path); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			if found := c.Find(path); found != nil {
				return found
			}
		}
	}
	return nil
}

// Walk calls a function for the field and for all fields below it, parents first.
func (f *Field) Walk(visit func(*Field)) {
	visit(f)
	for i := range f.Children {
		f.Children[i].Walk(visit)
	}
}

func describe(name, path string, s *props, depth int) Field {
	f := Field{
		Name: name, Path: path, Type: typeOf(s, depth), Format: s.Format, Description: strings.TrimSpace(s.Description),
		Default: text(s.Default), Constraints: constraints(s), Rules: rules(s), Open: keepsUnknown(s),
	}
	inner, prefix := element(s, path)
	f.Enum = enumOf(s)
	if inner != s && len(inner.Properties) == 0 {
		f.Enum = append(f.Enum, enumOf(inner)...)
		for _, c := range constraints(inner) {
			f.Constraints = append(f.Constraints, "each "+c)
		}
		f.Rules = append(f.Rules, rules(inner)...)
	}
	f.Immutable = slices.ContainsFunc(f.Rules, Rule.forbidsChanges)
	f.Deprecated = isDeprecated(f.Description)
	if depth < MaxDepth {
		f.Children = children(inner, prefix, depth)
	}
	for _, c := range f.Children {
		f.Total += 1 + c.Total
	}
	return f
}

func enumOf(s *props) []string {
	var out []string
	for _, e := range s.Enum {
		out = append(out, text(&e))
	}
	return out
}

// element returns the schema that has the fields below s: s itself, or the items of lists and the values of maps, to
// any depth, with the path of the fields.
func element(s *props, path string) (*props, string) {
	for range MaxDepth {
		next := itemsOf(s)
		if next == nil || len(s.Properties) > 0 {
			break
		}
		s, path = next, path+AnyItem
	}
	return s, path
}

func children(s *props, prefix string, depth int) []Field {
	var out []Field
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		child := s.Properties[name]
		c := describe(name, prefix+"."+name, &child, depth+1)
		c.Required = slices.Contains(s.Required, name)
		out = append(out, c)
	}
	slices.SortStableFunc(out, func(a, b Field) int { return rank(a, depth) - rank(b, depth) })
	return out
}

// rank orders required fields first. In the object itself, the specification comes first, and the fields that every
// object has come last.
func rank(f Field, depth int) int {
	switch {
	case depth == 0 && f.Name == "spec":
		return 0
	case depth == 0 && (f.Name == "apiVersion" || f.Name == "kind" || f.Name == "metadata"):
		return 3
	case f.Required:
		return 1
	}
	return 2
}

// itemsOf returns the schema of the items of a list or the values of a map; nil for other types.
func itemsOf(s *props) *props {
	if s.Items != nil {
		if s.Items.Schema != nil {
			return s.Items.Schema
		}
		if len(s.Items.JSONSchemas) > 0 {
			return &s.Items.JSONSchemas[0]
		}
	}
	if s.AdditionalProperties != nil {
		return s.AdditionalProperties.Schema
	}
	return nil
}

func keepsUnknown(s *props) bool {
	return s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields
}

// typeOf returns the type of a schema in words.
func typeOf(s *props, depth int) string {
	items := itemsOf(s)
	switch {
	case s.XIntOrString:
		return "integer or string"
	case s.XEmbeddedResource:
		return "Kubernetes object"
	case items != nil && depth >= MaxDepth:
		return "list"
	case s.Type == "array" && items != nil:
		return "list of " + plural(typeOf(items, depth+1))
	case s.Type == "array":
		return "list"
	case items != nil && len(s.Properties) == 0:
		return "map of " + plural(typeOf(items, depth+1))
	case s.Type == "":
		return "any"
	}
	return s.Type
}

// plural returns the plural of a type.
func plural(t string) string {
	switch head, rest, nested := strings.Cut(t, " of "); {
	case nested:
		return head + "s of " + rest
	case t == "any":
		return "any values"
	case t == "integer or string":
		return "integers or strings"
	default:
		return t + "s"
	}
}

// text returns a JSON value in compact form; empty for nil.
func text(v *apiextensionsv1.JSON) string {
	if v == nil {
		return ""
	}
	value, ok := decoded(v.Raw)
	if !ok {
		return string(v.Raw)
	}
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(value) != nil {
		return string(v.Raw)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// isDeprecated reports whether a description starts a sentence or a paragraph with the notice of Go and Kubernetes.
func isDeprecated(description string) bool {
	lower := strings.ToLower(description)
	return strings.HasPrefix(lower, "deprecated") || strings.Contains(lower, "deprecated:") ||
		strings.Contains(lower, "is deprecated") || strings.Contains(lower, "(deprecated)")
}
