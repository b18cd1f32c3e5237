package crd

import (
	"encoding/json"
	"slices"
	"strings"

	crdv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// A typeAdder adds the types that v1 requires and v1beta1 does not. A schema that accepts values of several types
// accepts any value instead.
type typeAdder struct {
	// untyped are the fields for which any value is accepted.
	untyped []string
}

// addToRoot adds the missing types of the schema of a version.
func (t *typeAdder) addToRoot(version string, root *crdv1.JSONSchemaProps) {
	if root.Type == "" {
		root.Type = "object"
	}
	for name, implied := range map[string]string{"apiVersion": "string", "kind": "string", "metadata": "object"} {
		if p, ok := root.Properties[name]; ok && p.Type == "" {
			p.Type = implied
			root.Properties[name] = p
		}
	}
	t.addBelow(version, root)
}

// addBelow adds the missing types of the schemas below one.
func (t *typeAdder) addBelow(path string, s *crdv1.JSONSchemaProps) {
	for name, property := range s.Properties {
		t.add(path+"."+name, &property)
		s.Properties[name] = property
	}
	if s.Items != nil && s.Items.Schema != nil {
		t.add(path+"[*]", s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		t.add(path+".*", s.AdditionalProperties.Schema)
	}
}

// add adds the missing types of a schema below the root, and of the schemas below it.
func (t *typeAdder) add(path string, s *crdv1.JSONSchemaProps) {
	t.addBelow(path, s)
	keeps := s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields
	switch {
	case s.Type != "" || s.XIntOrString:
	case s.XEmbeddedResource:
		s.Type = "object"
	case isIntOrString(s):
		s.XIntOrString = true
	case keeps:
	default:
		if s.Type = impliedType(s); s.Type == "" {
			t.acceptAny(path, s)
		}
	}
	if s.Type == "array" && s.Items == nil {
		items := &crdv1.JSONSchemaProps{}
		t.acceptAny(path+"[*]", items)
		s.Items = &crdv1.JSONSchemaPropsOrArray{Schema: items}
	}
}

// acceptAny makes a schema accept any value. In alternatives v1 allows no types, without which they would mean others.
func (t *typeAdder) acceptAny(path string, s *crdv1.JSONSchemaProps) {
	yes := true
	s.XPreserveUnknownFields = &yes
	hasType := func(s crdv1.JSONSchemaProps) bool { return s.Type != "" }
	if slices.ContainsFunc(slices.Concat(s.AnyOf, s.OneOf, s.AllOf), hasType) || s.Not != nil && s.Not.Type != "" {
		s.AnyOf, s.OneOf, s.AllOf, s.Not = nil, nil, nil, nil
	}
	t.untyped = append(t.untyped, path)
}

// isIntOrString reports whether a schema accepts integers and strings, in the only form that v1 accepts.
func isIntOrString(s *crdv1.JSONSchemaProps) bool {
	return len(s.AnyOf) == 2 && s.AnyOf[0].Type == "integer" && s.AnyOf[1].Type == "string"
}

// impliedType returns the type of the values that a schema without a type describes, or "" if they can have several.
func impliedType(s *crdv1.JSONSchemaProps) string {
	switch {
	case len(s.Properties) > 0 || s.AdditionalProperties != nil:
		return "object"
	case s.Items != nil:
		return "array"
	}
	found := ""
	for _, value := range s.Enum {
		implied := typeOf(value.Raw)
		if implied == "" || found != "" && found != implied {
			return ""
		}
		found = implied
	}
	return found
}

// typeOf returns the type of a value in JSON, or "" for null.
func typeOf(raw []byte) string {
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return ""
	}
	switch value.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	case float64:
		if !strings.ContainsAny(string(raw), ".eE") {
			return "integer"
		}
		return "number"
	}
	return ""
}

// sorted returns the fields for which any value is accepted, each once.
func (t *typeAdder) sorted() []string {
	slices.Sort(t.untyped)
	return slices.Compact(t.untyped)
}
