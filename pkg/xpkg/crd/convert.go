// Package crd converts CustomResourceDefinitions that API servers no longer accept, and CompositeResourceDefinitions to
// CustomResourceDefinitions.
package crd

import (
	"encoding/json"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	crdv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	kjson "sigs.k8s.io/json"

	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/canonical"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/kinds"
)

// FromV1Beta1 converts a CustomResourceDefinition of apiextensions.k8s.io/v1beta1
// to canonical JSON of v1, the only version since Kubernetes 1.22. It uses the conversion
// of the API server. Settings without an equivalent in v1 are translated: a CRD without a
// schema preserves unknown fields, preserveUnknownFields moves into the schemas, and schemas have
// the types that v1 requires.
func FromV1Beta1(text []byte) ([]byte, error) {
	converted, _, err := ConvertV1Beta1(text)
	return converted, err
}

// ConvertV1Beta1 is like [FromV1Beta1], and also returns the fields for which any value is accepted, because v1
// requires a type that their schema does not imply, in order: "v1.spec.list[*].field".
func ConvertV1Beta1(text []byte) (converted []byte, untyped []string, err error) {
	var old crdv1beta1.CustomResourceDefinition
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &old); err != nil {
		return nil, nil, fmt.Errorf("cannot decode: %w", err)
	}
	crdv1beta1.SetObjectDefaults_CustomResourceDefinition(&old)
	var between apiextensions.CustomResourceDefinition
	if err := crdv1beta1.Convert_v1beta1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(
		&old, &between, nil,
	); err != nil {
		return nil, nil, fmt.Errorf("cannot convert: %w", err)
	}
	var crd crdv1.CustomResourceDefinition
	if err := crdv1.Convert_apiextensions_CustomResourceDefinition_To_v1_CustomResourceDefinition(
		&between, &crd, nil,
	); err != nil {
		return nil, nil, fmt.Errorf("cannot convert: %w", err)
	}
	crd.APIVersion, crd.Kind = crdv1.SchemeGroupVersion.String(), kinds.CRD
	untyped = keepUnknownFields(&crd)
	converted, err = canonicalCRD(&crd)
	return converted, untyped, err
}

// keepUnknownFields moves preserveUnknownFields of v1beta1 into the schemas, and adds the types that v1 requires. It
// returns the fields that remain without a type.
func keepUnknownFields(crd *crdv1.CustomResourceDefinition) []string {
	types := &typeAdder{}
	keep := crd.Spec.PreserveUnknownFields
	crd.Spec.PreserveUnknownFields = false
	yes := true
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
			v.Schema = &crdv1.CustomResourceValidation{OpenAPIV3Schema: &crdv1.JSONSchemaProps{
				Type: "object", XPreserveUnknownFields: &yes,
			}}
			continue
		}
		// Versions can share a schema.
		v.Schema = v.Schema.DeepCopy()
		types.addToRoot(v.Name, v.Schema.OpenAPIV3Schema)
		if keep {
			keepInRoot(v.Schema.OpenAPIV3Schema)
		}
	}
	return types.sorted()
}

// keepInRoot marks a schema and everything in it, except the metadata: the API server defines
// its fields.
func keepInRoot(s *crdv1.JSONSchemaProps) {
	metadata, has := s.Properties["metadata"]
	keepInSchema(s)
	if has {
		s.Properties["metadata"] = metadata
	}
}

// keepInSchema marks each object of a schema, and those below it.
func keepInSchema(s *crdv1.JSONSchemaProps) {
	yes := true
	if s.Type == "object" && s.AdditionalProperties == nil {
		s.XPreserveUnknownFields = &yes
	}
	for name, property := range s.Properties {
		keepInSchema(&property)
		s.Properties[name] = property
	}
	if s.Items != nil && s.Items.Schema != nil {
		keepInSchema(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		keepInSchema(s.AdditionalProperties.Schema)
	}
}

// canonicalCRD encodes a CRD without the fields that only an API server sets.
func canonicalCRD(crd *crdv1.CustomResourceDefinition) ([]byte, error) {
	text, err := json.Marshal(crd)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &object); err != nil {
		return nil, err
	}
	delete(object, "status")
	if meta, ok := object["metadata"].(map[string]any); ok {
		delete(meta, "creationTimestamp")
	}
	if text, err = json.Marshal(object); err != nil {
		return nil, err
	}
	return canonical.Normalize(text), nil
}
