package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/spelling"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/crd"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/canonical"
)

// unknownField describes an unknown field, and the known field whose spelling is closest to it.
func unknownField(path string, known []string) Problem {
	name := strings.TrimSuffix(path[strings.LastIndexAny(path, ".[")+1:], "]")
	return Problem{Path: path, Message: "is unknown" + didYouMean(name, known)}
}

func didYouMean(name string, known []string) string {
	if near := spelling.Field(name, known); near != "" {
		return fmt.Sprintf(", did you mean %q", near)
	}
	return ""
}

// unknown returns the unknown fields of a value. A mapping without known fields has no unknown ones.
func (s *schema) unknown(path string, value any) []Problem {
	var out []Problem
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			switch field := s.fields[name]; {
			case s.kind == mapping:
				out = append(out, s.items.unknown(join(path, name), v[name])...)
			case field != nil:
				out = append(out, field.unknown(join(path, name), v[name])...)
			case s.kind == object && len(s.fields) > 0:
				out = append(out, unknownField(join(path, name), slices.Sorted(maps.Keys(s.fields))))
			}
		}
	case []any:
		for i, item := range v {
			if s.kind == list {
				out = append(out, s.items.unknown(fmt.Sprintf("%s[%d]", path, i), item)...)
			}
		}
	}
	return out
}

// requiredWithoutProperty returns the required fields in the schemas of a CRD that are not among the properties: an API
// server drops them, so that every resource lacks them. The composition engine adds properties to the schemas of an
// XRD.
func requiredWithoutProperty(text []byte, composite bool) []Problem {
	r := requiredReader{at: canonical.Cursor{Text: text}, composite: composite}
	r.walk()
	return r.problems
}

// requiredReader reads the schemas of a CRD.
type requiredReader struct {
	at        canonical.Cursor
	composite bool
	path      []string
	problems  []Problem
}

// level is a schema with its alternatives, which describe the same value.
type level struct {
	properties []string
	required   []Problem // Message is the name of the field.
	// open means that the value can have any field.
	open bool
}

// walk searches a value for schemas.
func (r *requiredReader) walk() {
	switch r.at.Text[r.at.At] {
	case '{':
		r.at.Fields(func(key string) bool {
			r.below("."+key, func() {
				if key == "openAPIV3Schema" {
					r.schema("apiVersion", "kind", "metadata")
				} else {
					r.walk()
				}
			})
			return true
		})
	case '[':
		r.elements(r.walk)
	}
}

func (r *requiredReader) below(step string, read func()) {
	r.path = append(r.path, step)
	read()
	r.path = r.path[:len(r.path)-1]
}

// elements calls read for each element of the array at the cursor, if there is one.
func (r *requiredReader) elements(read func()) {
	if r.at.Text[r.at.At] != '[' {
		return
	}
	i := 0
	r.at.Elements(func() {
		r.below(fmt.Sprintf("[%d]", i), read)
		i++
	})
}

// schema reads the schema at the cursor, whose value has implied fields.
func (r *requiredReader) schema(implied ...string) {
	l := level{properties: implied}
	if n := len(r.path); r.composite && n > 2 && r.path[n-3] == ".openAPIV3Schema" {
		// A property of the root.
		l.properties = slices.Concat(crd.CompositeFields, crd.LegacyCompositeFields, crd.ClaimFields, crd.StatusFields)
	}
	r.level(&l, true)
	if l.open {
		return
	}
	for _, field := range l.required {
		if !slices.Contains(l.properties, field.Message) {
			text := fmt.Sprintf("requires %.100q, which is not among the properties", field.Message)
			r.problems = append(r.problems, Problem{Path: field.Path, Message: text + didYouMean(field.Message, l.properties)})
		}
	}
}

// level reads the fields of a schema, or of one of its alternatives, which are not structural.
func (r *requiredReader) level(l *level, structural bool) {
	r.at.Fields(func(key string) bool {
		r.below("."+key, func() { r.keyword(key, l, structural) })
		return true
	})
}

func (r *requiredReader) keyword(key string, l *level, structural bool) {
	first := r.at.Text[r.at.At]
	switch key {
	case "properties":
		r.at.Fields(func(name string) bool {
			l.properties = append(l.properties, name)
			if structural {
				r.below("["+name+"]", func() { r.schema() })
			}
			return true
		})
	case "required":
		r.elements(func() {
			if name, ok := r.at.String(); ok {
				l.required = append(l.required, Problem{Path: strings.TrimPrefix(strings.Join(r.path, ""), "."), Message: name})
			}
		})
	case "items", "additionalProperties":
		l.open = l.open || key == "additionalProperties" && first != 'f'
		if structural && first == '{' {
			r.schema()
		}
	case "allOf", "anyOf", "oneOf":
		r.elements(func() { r.level(l, false) })
	case "x-kubernetes-preserve-unknown-fields":
		l.open = l.open || first == 't'
	case "x-kubernetes-embedded-resource":
		if first == 't' {
			l.properties = append(l.properties, "apiVersion", "kind", "metadata")
		}
	}
}
