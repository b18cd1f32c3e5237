package crdvalidation

import (
	"encoding/json"
	"errors"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// componentPrefix precedes the name of a schema in a reference of an OpenAPI document.
const componentPrefix = "#/components/schemas/"

// kindExtension lists the kinds of a schema of an OpenAPI document.
const kindExtension = "x-kubernetes-group-version-kind"

// AddOpenAPI adds the schemas of an OpenAPI document, version 3, as an API server serves it below /openapi/v3. They are
// returned by [Schemas.OpenAPI], also in place of the schema of a CRD, and do not validate resources. It fails for text
// that is no such document.
func (s *Schemas) AddOpenAPI(text []byte) error {
	document := &spec3.OpenAPI{}
	if err := json.Unmarshal(text, document); err != nil {
		return err
	}
	if document.Components == nil || len(document.Components.Schemas) == 0 {
		return errors.New("it has no schemas in components.schemas")
	}
	for name, component := range document.Components.Schemas {
		var kinds []schema.GroupVersionKind
		if err := component.Extensions.GetObject(kindExtension, &kinds); err != nil {
			return err
		}
		if len(kinds) != 1 {
			continue // A schema that several kinds share, such as DeleteOptions, is none of a resource.
		}
		if s.documents == nil {
			s.documents = map[schema.GroupVersionKind]openAPISchema{}
		}
		s.documents[kinds[0]] = openAPISchema{document, name}
	}
	return nil
}

// openAPISchema is a schema of an OpenAPI document.
type openAPISchema struct {
	document *spec3.OpenAPI
	name     string
}

// flat returns the schema without references. A reference to a schema that contains it is replaced by an empty object.
func (c openAPISchema) flat() (*spec.Schema, error) {
	return resolver.PopulateRefs(func(ref string) (*spec.Schema, bool) {
		found, ok := c.document.Components.Schemas[ref[min(len(componentPrefix), len(ref)):]]
		return found, ok
	}, componentPrefix+c.name)
}

// OpenAPI returns the OpenAPI schema of a kind, or nil if it has none.
func (s *Schemas) OpenAPI(kind schema.GroupVersionKind) (out map[string]any, err error) {
	defer catch(&err)
	var value any
	switch c, ok := s.documents[kind]; {
	case ok:
		if value, err = c.flat(); err != nil {
			return nil, err
		}
	case s.of(kind) != nil && s.kinds[kind].builtin == nil:
		var props apiextensionsv1.JSONSchemaProps
		if err := apiextensionsv1.Convert_apiextensions_JSONSchemaProps_To_v1_JSONSchemaProps(
			s.kinds[kind].props, &props, nil,
		); err != nil {
			return nil, err
		}
		value = props
	default:
		return nil, nil
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return out, json.Unmarshal(raw, &out)
}
