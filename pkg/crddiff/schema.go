package crddiff

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

type schema = apiextensionsv1.JSONSchemaProps

// anyItem is the path element of the items of a list and the values of a map.
const anyItem = "[*]"

// compareSchema compares the schemas of one field and of everything below it. The path of the object itself is "".
func (c *comparison) compareSchema(path string, a, b *schema) {
	field{c: c, path: path}.compareSchema(a, b)
}

func (f field) compareSchema(a, b *schema) {
	if reflect.DeepEqual(a, b) {
		return
	}
	if f.path == "" || a.XEmbeddedResource && b.XEmbeddedResource {
		a, b = withObjectFields(a), withObjectFields(b)
	}
	if typeOf(a) != typeOf(b) {
		class := Breaking
		reason := "the type changed"
		if typeOf(a) == "integer" && (typeOf(b) == "number" || typeOf(b) == "integer or string") ||
			typeOf(a) == "string" && typeOf(b) == "integer or string" {
			class, reason = Care, "the type accepts more values; clients that decode the former type fail on them"
		}
		f.add(class, TypeChanged, "", typeOf(a), typeOf(b), "%s", reason)
		if class == Breaking {
			// The constraints and fields of different types cannot be compared.
			return
		}
	}
	f.compareDefault(a, b)
	f.compareEnum(a, b)
	f.compareLimits(a, b)
	f.compareTexts(a, b)
	f.compareFlags(a, b)
	f.compareRules(a, b)
	f.compareAlternatives(a, b)
	f.compareRequired(a, b)
	f.compareProperties(a, b)
	f.compareItems("items", itemsOf(a), itemsOf(b))
	f.compareItems("additionalProperties", valuesOf(a), valuesOf(b))
	if a.Description != b.Description || a.Title != b.Title || !reflect.DeepEqual(a.Example, b.Example) ||
		!reflect.DeepEqual(a.ExternalDocs, b.ExternalDocs) {
		f.add(Safe, DocumentationChanged, "", "", "", "the documentation changed")
	}
}

// objectFields are the fields that every object has, also if the schema does not describe them. A schema of metadata
// can only describe the two names.
var objectFields = map[string]schema{
	"apiVersion": {Type: "string"},
	"kind":       {Type: "string"},
	"metadata": {Type: "object", Properties: map[string]schema{"name": {Type: "string"}, "generateName": {
		Type: "string",
	}}},
}

// withObjectFields returns the schema of an object with objectFields.
func withObjectFields(s *schema) *schema {
	out := withFields(*s, objectFields)
	return &out
}

// withFields returns a schema with fields that it has implicitly. A field that the schema describes keeps its
// constraints.
func withFields(s schema, fields map[string]schema) schema {
	properties := maps.Clone(fields)
	for name, described := range s.Properties {
		if implicit, ok := fields[name]; ok {
			described.Type = cmp.Or(described.Type, implicit.Type)
			if implicit.Properties != nil {
				described = withFields(described, implicit.Properties)
			}
		}
		properties[name] = described
	}
	s.Properties = properties
	return s
}

// typeOf returns the type of a schema for messages.
func typeOf(s *schema) string {
	switch {
	case s.XIntOrString:
		return "integer or string"
	case s.XEmbeddedResource:
		return "object with apiVersion and kind"
	case s.Type == "":
		return "any"
	case s.Type == "object" && s.AdditionalProperties != nil && len(s.Properties) == 0:
		return "map"
	default:
		return s.Type
	}
}

// compareItems compares the schemas of the items of a list or of the values of a map. Without a schema, a field of any
// type keeps them.
func (f field) compareItems(subject string, a, b *schema) {
	switch {
	case a != nil && b != nil:
		f.c.compareSchema(f.path+anyItem, a, b)
	case b != nil:
		f.tighten(
			ConstraintTightened, subject, "", typeOf(b), "%s, which were kept without validation, are now validated", subject,
		)
	case a != nil:
		f.add(
			Care, ConstraintLoosened, subject, typeOf(a), "", "%s are no longer described, and are kept without validation",
			subject,
		)
	}
}

// itemsOf returns the schema of the items of a list, and nil for anything else.
func itemsOf(s *schema) *schema {
	if s.Items == nil {
		return nil
	}
	return s.Items.Schema
}

// valuesOf returns the schema of the values of a map, and nil for anything else.
func valuesOf(s *schema) *schema {
	if s.AdditionalProperties == nil {
		return nil
	}
	return s.AdditionalProperties.Schema
}

// field is the field that is compared.
type field struct {
	c    *comparison
	path string
	// required reports whether its object requires the field before and after the change.
	required bool
}

func (f field) add(class Class, t Type, subject, from, to, format string, args ...any) {
	f.c.add(class, t, f.path, subject, from, to, format, args...)
}

// tighten adds a change that rejects values that were valid.
func (f field) tighten(t Type, subject, from, to, format string, args ...any) {
	class := Breaking
	if f.path == ".status" || strings.HasPrefix(f.path, ".status.") {
		class = Care
	}
	f.add(class, t, subject, from, to, format, args...)
}

func (f field) compareDefault(a, b *schema) {
	from, to := text(a.Default), text(b.Default)
	switch {
	case from == to:
	case from == "":
		f.add(Care, DefaultAdded, "default", from, to, "objects without the field get a value")
	case to == "" && f.required:
		f.tighten(DefaultRemoved, "default", from, to, "the field, which is required, no longer has a default")
	case to == "":
		f.add(Care, DefaultRemoved, "default", from, to, "objects without the field no longer get a value")
	default:
		f.add(Care, DefaultChanged, "default", from, to, "objects without the field get another value")
	}
}

func (f field) compareEnum(a, b *schema) {
	values := func(s *schema) (out []string) {
		for i := range s.Enum {
			out = append(out, text(&s.Enum[i]))
		}
		return out
	}
	from, to := values(a), values(b)
	switch {
	case len(from) == 0 && len(to) > 0:
		f.tighten(EnumAdded, "enum", "", strings.Join(to, ", "), "only listed values are allowed")
	case len(from) > 0 && len(to) == 0:
		f.add(Safe, EnumRemoved, "enum", strings.Join(from, ", "), "", "all values are allowed")
	default:
		if gone := without(from, to); len(gone) > 0 {
			f.tighten(EnumValuesRemoved, "enum", strings.Join(gone, ", "), "", "values are no longer allowed")
		}
		if added := without(to, from); len(added) > 0 {
			f.add(Safe, EnumValuesAdded, "enum", "", strings.Join(added, ", "), "more values are allowed")
		}
	}
}

func (f field) compareRequired(a, b *schema) {
	for _, name := range without(b.Required, a.Required) {
		if f.alwaysHas(b, name) {
			continue
		}
		next, exists := b.Properties[name]
		_, existed := a.Properties[name]
		child := field{c: f.c, path: f.path + "." + name}
		switch {
		case exists && next.Default != nil:
			child.add(Care, RequiredAdded, "required", "", "", "the field is required, and has a default")
		case existed || !exists:
			child.tighten(RequiredAdded, "required", "", "", "the field is required")
		default:
			child.tighten(RequiredAdded, "required", "", "", "a required field was added")
		}
	}
	for _, name := range without(a.Required, b.Required) {
		if _, exists := b.Properties[name]; exists && !f.alwaysHas(b, name) {
			field{c: f.c, path: f.path + "." + name}.add(Safe, RequiredRemoved, "required", "", "", "the field is optional")
		}
	}
}

// alwaysHas reports whether the API server ensures that a valid object has the field.
func (f field) alwaysHas(s *schema, name string) bool {
	switch {
	case f.path == "":
		return name == "apiVersion" || name == "kind" || name == "metadata"
	case f.path == ".metadata":
		return name == "name"
	default:
		return s.XEmbeddedResource && (name == "apiVersion" || name == "kind")
	}
}

func (f field) compareProperties(a, b *schema) {
	wasRequired, isRequired := setOf(a.Required), setOf(b.Required)
	for _, name := range slices.Sorted(maps.Keys(a.Properties)) {
		child, was := f.path+"."+name, a.Properties[name]
		if next, exists := b.Properties[name]; exists {
			field{c: f.c, path: child, required: wasRequired[name] && isRequired[name]}.compareSchema(&was, &next)
			continue
		}
		if keepsUnknown(b) {
			field{c: f.c, path: child}.add(
				Care, FieldRemoved, "", typeOf(&was), "",
				"the field is no longer described, and its values are kept without validation",
			)
			continue
		}
		field{c: f.c, path: child}.add(
			Breaking, FieldRemoved, "", typeOf(&was), "",
			"the field was removed; stored values are dropped when the object is written",
		)
	}
	for _, name := range slices.Sorted(maps.Keys(b.Properties)) {
		next := b.Properties[name]
		if _, existed := a.Properties[name]; existed {
			continue
		}
		child := field{c: f.c, path: f.path + "." + name}
		if keepsUnknown(a) {
			child.tighten(FieldAdded, "", "", typeOf(&next), "the field, which was kept without validation, is now validated")
			continue
		}
		child.add(Safe, FieldAdded, "", "", typeOf(&next), "the field was added")
	}
}

// keepsUnknown reports whether an object keeps fields that its schema does not describe.
func keepsUnknown(s *schema) bool {
	return s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields ||
		s.AdditionalProperties != nil && s.AdditionalProperties.Allows && s.AdditionalProperties.Schema == nil
}

// text returns the compact JSON of a value, and "" for none.
func text(v *apiextensionsv1.JSON) string {
	if v == nil {
		return ""
	}
	var b bytes.Buffer
	if err := json.Compact(&b, v.Raw); err != nil {
		return string(v.Raw)
	}
	return b.String()
}
