// Package jsonschema derives JSON schemas from Go types, for the files that other programs read.
package jsonschema

import (
	"encoding"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Schema is a JSON schema. An empty schema accepts every value.
type Schema struct {
	Schema      string `json:"$schema,omitempty"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	// Type is the JSON type, or a type and "null".
	Type   any    `json:"type,omitempty"`
	Format string `json:"format,omitempty"`
	// Const is the only accepted value.
	Const      string             `json:"const,omitempty"`
	Properties map[string]*Schema `json:"properties,omitempty"`
	Required   []string           `json:"required,omitempty"`
	Items      *Schema            `json:"items,omitempty"`
	// AdditionalProperties is the schema of the values of a map.
	AdditionalProperties *Schema `json:"additionalProperties,omitempty"`
}

// dialect is the version of JSON schemas.
const dialect = "https://json-schema.org/draft/2020-12/schema"

// Of returns the schema of the JSON encoding of a type. Fields that the encoding can omit are optional, and other
// fields are accepted, because later versions can add some. It fails for a type that contains itself, and for one
// without an encoding.
func Of(t reflect.Type, title, description string) (*Schema, error) {
	s, err := of(t, nil)
	if err != nil {
		return nil, err
	}
	s.Schema, s.Title, s.Description = dialect, title, description
	return s, nil
}

// Write writes a schema as indented JSON.
func (s *Schema) Write(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(s)
}

var (
	rawMessage    = reflect.TypeFor[json.RawMessage]()
	timeType      = reflect.TypeFor[time.Time]()
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// of returns the schema of a type within the types above it.
func of(t reflect.Type, above []reflect.Type) (*Schema, error) {
	if slices.Contains(above, t) {
		return nil, fmt.Errorf("the type %s contains itself", t)
	}
	above = append(slices.Clone(above), t)
	switch {
	case t == rawMessage:
		return &Schema{}, nil
	case t == timeType:
		return &Schema{Type: "string", Format: "date-time"}, nil
	case t.Implements(jsonMarshaler):
		return &Schema{}, nil
	case t.Implements(textMarshaler):
		return &Schema{Type: "string"}, nil
	}
	switch t.Kind() {
	case reflect.Bool:
		return &Schema{Type: "boolean"}, nil
	case reflect.String:
		return &Schema{Type: "string"}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8,
		reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &Schema{Type: "integer"}, nil
	case reflect.Float32, reflect.Float64:
		return &Schema{Type: "number"}, nil
	case reflect.Interface:
		return &Schema{}, nil
	case reflect.Pointer:
		return of(t.Elem(), above)
	case reflect.Slice, reflect.Array:
		items, err := of(t.Elem(), above)
		return &Schema{Type: "array", Items: items}, err
	case reflect.Map:
		values, err := of(t.Elem(), above)
		return &Schema{Type: "object", AdditionalProperties: values}, err
	case reflect.Struct:
		s := &Schema{Type: "object", Properties: map[string]*Schema{}}
		return s, s.addFields(t, above)
	}
	return nil, fmt.Errorf("the type %s has no JSON", t)
}

// addFields adds the fields of a struct.
func (s *Schema) addFields(t reflect.Type, above []reflect.Type) error {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		kind := f.Type
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
			continue
		case f.Anonymous && name == "" && kind.Kind() == reflect.Struct:
			if err := s.addFields(kind, above); err != nil {
				return err
			}
			continue
		case name == "":
			name = f.Name
		}
		field, err := of(f.Type, above)
		if err != nil {
			return err
		}
		if !strings.Contains(options, "omit") {
			s.Required = append(s.Required, name)
			if isNil(f.Type) && field.Type != nil {
				field.Type = []string{fmt.Sprint(field.Type), "null"}
			}
		}
		s.Properties[name] = field
	}
	return nil
}

// isNil reports whether a type has a value that is encoded as null.
func isNil(t reflect.Type) bool {
	return slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Map}, t.Kind())
}
