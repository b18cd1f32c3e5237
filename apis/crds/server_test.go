package crds

import (
	"context"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// The budgets of an API server, in its units of cost: for one rule on one
// object, and for all rules of a request.
const (
	costOfRule    = 1_000_000
	costOfRequest = 10_000_000
)

// internal returns a definition as an API server sees it: with its defaults, and
// in its internal version.
func internal(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) *apiextensions.CustomResourceDefinition {
	t.Helper()
	s := runtime.NewScheme()
	install.Install(s)
	s.Default(crd)
	out := &apiextensions.CustomResourceDefinition{}
	if err := s.Convert(crd, out, nil); err != nil {
		t.Fatal(err)
	}
	return out
}

// submit processes an object as an API server does: it prunes it, sets defaults, validates it
// against the schema, and evaluates the rules. It modifies the object.
func submit(
	t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, version string, object map[string]any,
) field.ErrorList {
	t.Helper()
	props := schemaOf(t, internal(t, crd), version)
	structural, err := schema.NewStructural(props)
	if err != nil {
		t.Fatal(err)
	}
	pruning.Prune(object, structural, true)
	defaulting.Default(object, structural)
	validator, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		t.Fatal(err)
	}
	errs := validation.ValidateCustomResource(nil, object, validator)
	if v := cel.NewValidator(structural, true, costOfRule); v != nil {
		found, _ := v.Validate(context.Background(), nil, structural, object, nil, costOfRequest)
		errs = append(errs, found...)
	}
	return errs
}

func schemaOf(
	t *testing.T, crd *apiextensions.CustomResourceDefinition, version string,
) *apiextensions.JSONSchemaProps {
	t.Helper()
	if crd.Spec.Validation != nil {
		return crd.Spec.Validation.OpenAPIV3Schema // The same at all versions.
	}
	for _, v := range crd.Spec.Versions {
		if v.Name == version {
			return v.Schema.OpenAPIV3Schema
		}
	}
	t.Fatalf("%s has no version %s", crd.Name, version)
	return nil
}

func parse(t *testing.T, doc string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := yaml.Unmarshal([]byte(doc), &out); err != nil {
		t.Fatal(err)
	}
	return out
}
