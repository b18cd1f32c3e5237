package crds

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// facts is a CRD split into statements that can be compared one by one: each has a place and a
// value. Descriptions are omitted, because no client depends on them.
type facts map[string]string

func flatten(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) facts {
	t.Helper()
	f := facts{
		"scope":      string(crd.Spec.Scope),
		"kind":       crd.Spec.Names.Kind + " " + crd.Spec.Names.ListKind,
		"names":      crd.Spec.Names.Plural + " " + crd.Spec.Names.Singular,
		"shortNames": strings.Join(crd.Spec.Names.ShortNames, " "),
		"categories": strings.Join(crd.Spec.Names.Categories, " "),
	}
	for _, v := range crd.Spec.Versions {
		if v.Served {
			f.version(t, v)
		}
	}
	return f
}

func (f facts) version(t *testing.T, v apiextensionsv1.CustomResourceDefinitionVersion) {
	f[v.Name+" storage"] = fmt.Sprint(v.Storage)
	f[v.Name+" status"] = fmt.Sprint(v.Subresources != nil && v.Subresources.Status != nil)
	f[v.Name+" deprecated"] = fmt.Sprint(v.Deprecated)
	for i, c := range v.AdditionalPrinterColumns {
		f[fmt.Sprintf("%s column %d", v.Name, i)] = fmt.Sprintf("%s %s %s %d", c.Name, c.Type, c.JSONPath, c.Priority)
	}
	f.schema(t, v.Name+" ", v.Schema.OpenAPIV3Schema, false)
}

// schema states the facts of one field and of all fields below it. A list's
// elements are at [], and a map's values at {}.
func (f facts) schema(t *testing.T, at string, s *apiextensionsv1.JSONSchemaProps, required bool) {
	own := *s
	own.Description, own.Properties, own.Items, own.AdditionalProperties, own.Required = "", nil, nil, nil, nil
	b, err := json.Marshal(own)
	if err != nil {
		t.Fatal(err)
	}
	f[at] = string(b)
	if required {
		f[at] += " required"
	}
	for name, p := range s.Properties {
		f.schema(t, at+"."+name, &p, slices.Contains(s.Required, name))
	}
	if s.Items != nil && s.Items.Schema != nil {
		f.schema(t, at+"[]", s.Items.Schema, false)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		f.schema(t, at+"{}", s.AdditionalProperties.Schema, false)
	}
}
