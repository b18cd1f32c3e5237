package typed

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"

	crdv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kind is the JSON type of a shape.
type kind string

const (
	anything kind = "anything"
	object   kind = "a mapping"
	mapping  kind = "a mapping " // with any keys
	list     kind = "a list"
	text     kind = "a string"
	integer  kind = "an integer"
	number   kind = "a number"
	boolean  kind = "a boolean"
	// either is one of several shapes with different JSON types.
	either kind = "one of"
)

// A Shape is the form of the JSON that a Go type accepts.
type Shape struct {
	kind   kind
	fields map[string]*Shape
	// items is the shape of the elements of a list, and of the values of a mapping.
	items *Shape
	// options are the shapes of either.
	options []*Shape
}

var (
	shapes     = map[reflect.Type]*Shape{}
	shapesLock sync.Mutex
)

// ShapeOf returns the shape of a Go type.
func ShapeOf[T any]() *Shape {
	shapesLock.Lock()
	defer shapesLock.Unlock()
	return shapeOf(reflect.TypeFor[T]())
}

// unions are the types whose values have different JSON types.
var unions = map[reflect.Type][]reflect.Type{
	reflect.TypeFor[crdv1.JSONSchemaPropsOrArray](): {
		reflect.TypeFor[crdv1.JSONSchemaProps](), reflect.TypeFor[[]crdv1.JSONSchemaProps](),
	},
	reflect.TypeFor[crdv1.JSONSchemaPropsOrBool](): {
		reflect.TypeFor[crdv1.JSONSchemaProps](), reflect.TypeFor[bool](),
	},
	reflect.TypeFor[crdv1.JSONSchemaPropsOrStringArray](): {
		reflect.TypeFor[crdv1.JSONSchemaProps](), reflect.TypeFor[[]string](),
	},
	reflect.TypeFor[crdv1beta1.JSONSchemaPropsOrArray](): {
		reflect.TypeFor[crdv1beta1.JSONSchemaProps](), reflect.TypeFor[[]crdv1beta1.JSONSchemaProps](),
	},
	reflect.TypeFor[crdv1beta1.JSONSchemaPropsOrBool](): {
		reflect.TypeFor[crdv1beta1.JSONSchemaProps](), reflect.TypeFor[bool](),
	},
	reflect.TypeFor[crdv1beta1.JSONSchemaPropsOrStringArray](): {
		reflect.TypeFor[crdv1beta1.JSONSchemaProps](), reflect.TypeFor[[]string](),
	},
	reflect.TypeFor[metav1.Time](): {reflect.TypeFor[string]()},
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

func shapeOf(t reflect.Type) *Shape {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if s := shapes[t]; s != nil {
		return s
	}
	s := &Shape{}
	shapes[t] = s // before the fields, because types are recursive
	if options, ok := unions[t]; ok {
		s.kind = either
		for _, o := range options {
			s.options = append(s.options, shapeOf(o))
		}
		return s
	}
	if reflect.PointerTo(t).Implements(unmarshaler) {
		s.kind = anything
		return s
	}
	switch t.Kind() {
	case reflect.Struct:
		s.kind, s.fields = object, map[string]*Shape{}
		s.addFields(t)
	case reflect.Map:
		s.kind, s.items = mapping, shapeOf(t.Elem())
	case reflect.Slice:
		s.kind, s.items = list, shapeOf(t.Elem())
		if t.Elem().Kind() == reflect.Uint8 {
			s.kind = text // base64
		}
	case reflect.String:
		s.kind = text
	case reflect.Bool:
		s.kind = boolean
	case reflect.Float32, reflect.Float64:
		s.kind = number
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		s.kind = integer
	default:
		s.kind = anything
	}
	return s
}

func (s *Shape) addFields(t reflect.Type) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" && f.Anonymous: // of an exported type or not, as for encoding/json
			s.addFields(f.Type)
		case name == "-" || !f.IsExported():
		case name != "":
			s.fields[name] = shapeOf(f.Type)
		}
	}
}
