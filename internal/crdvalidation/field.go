package crdvalidation

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xpkg-dev/xpkg/internal/spelling"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
)

// FieldPath is the path of a field as patches of compositions write it, such as spec.rules[0].name or
// metadata.labels[app]. An element is the name of a field or of a key, an index, or * for every element.
type FieldPath []string

// ParseFieldPath reads a path.
func ParseFieldPath(path string) (FieldPath, error) {
	var out FieldPath
	for rest := path; rest != ""; {
		if inner, ok := strings.CutPrefix(rest, "["); ok {
			element, after, closed := strings.Cut(inner, "]")
			if !closed {
				return nil, fmt.Errorf("the path %q has a bracket that is not closed", path)
			}
			out, rest = append(out, strings.Trim(element, `'"`)), after
		} else {
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			out, rest = append(out, rest[:end]), rest[end:]
		}
		if out[len(out)-1] == "" {
			return nil, fmt.Errorf("the path %q has an empty element", path)
		}
		if after, ok := strings.CutPrefix(rest, "."); ok {
			if rest = after; rest == "" || rest[0] == '.' || rest[0] == '[' {
				return nil, fmt.Errorf("the path %q has an empty element", path)
			}
		}
	}
	if out == nil {
		return nil, errors.New("the path is empty")
	}
	return out, nil
}

// Covers reports whether setting the value at the path p also sets a value at the path of, or at a part of it.
func (p FieldPath) Covers(of FieldPath) bool {
	for i := range min(len(p), len(of)) {
		if p[i] != of[i] && p[i] != "*" && of[i] != "*" {
			return false
		}
	}
	return true
}

// FieldType is the JSON type of a field: "string", "integer", "number", "boolean", "object" or "array". It is "" if the
// field can have several types.
type FieldType string

// Fits reports whether a value of the type can be one of another type.
func (t FieldType) Fits(other FieldType) bool {
	isNumber := func(t FieldType) bool { return t == "integer" || t == "number" }
	return t == other || t == "" || other == "" || isNumber(t) && isNumber(other)
}

// Field returns the type of the field at a path of the resources of a kind, which must have a schema. The error tells
// why there is no such field.
func (s *Schemas) Field(kind schema.GroupVersionKind, path FieldPath) (FieldType, error) {
	v := s.of(kind)
	if err := v.prepare(); err != nil {
		return "", nil //nolint:nilerr // The validation of resources reports the schema.
	}
	if path[0] == "apiVersion" || path[0] == "kind" {
		return "string", nil
	}
	at := v.structural
	if path[0] == "metadata" {
		meta, err := metadata()
		if err != nil {
			return "", err
		}
		at = &structuralschema.Structural{Properties: map[string]structuralschema.Structural{"metadata": *meta.structural}}
	}
	for i, name := range path {
		next, err := child(at, name)
		if err != nil {
			return "", fmt.Errorf("%s: %w", strings.Join(path[:i+1], "."), err)
		}
		if next == nil {
			return "", nil
		}
		at = next
	}
	if at.XIntOrString || at.XPreserveUnknownFields && at.Type != "object" {
		return "", nil
	}
	return FieldType(at.Type), nil
}

// child returns the schema of a field, of an element of a list, or of a value of a map. It is nil if any is accepted.
func child(s *structuralschema.Structural, name string) (*structuralschema.Structural, error) {
	_, err := strconv.ParseUint(name, 10, 32)
	isIndex := err == nil || name == "*"
	if s.Type == "array" {
		if !isIndex {
			return nil, errors.New("its parent is a list")
		}
		return s.Items, nil
	}
	if property, ok := s.Properties[name]; ok {
		return &property, nil
	}
	switch {
	case s.AdditionalProperties != nil:
		return s.AdditionalProperties.Structural, nil
	case s.XPreserveUnknownFields, s.XEmbeddedResource, name == "*" && s.Type == "object":
		return nil, nil
	case s.Type == "object" || s.Type == "":
		return nil, errors.New("unknown field" + didYouMean(name, fieldsOf(s)))
	}
	return nil, fmt.Errorf("its parent is of the type %s", s.Type)
}

// unknownField describes an unknown field of a resource.
func (v *versionSchema) unknownField(path string) check.Problem {
	return unknownField(v.structural, "", path)
}

// unknownField describes the unknown field at a path within a schema, and the known field that might be meant.
func unknownField(s *structuralschema.Structural, prefix, path string) check.Problem {
	p := check.Problem{Path: prefix + path, Message: "unknown field"}
	elements, err := ParseFieldPath(path)
	if err != nil {
		return p
	}
	for _, name := range elements[:len(elements)-1] {
		if s, err = child(s, name); s == nil || err != nil {
			return p
		}
	}
	p.Message += didYouMean(elements[len(elements)-1], fieldsOf(s))
	return p
}

func fieldsOf(s *structuralschema.Structural) []string { return slices.Sorted(maps.Keys(s.Properties)) }

func didYouMean(name string, known []string) string {
	if near := spelling.Field(name, known); near != "" {
		return fmt.Sprintf(", did you mean %q", near)
	}
	return ""
}
