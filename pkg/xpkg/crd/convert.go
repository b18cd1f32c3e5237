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
// schema preserves unknown fields, and preserveUnknownFields moves into the schemas.
func FromV1Beta1(text []byte) ([]byte, error) {
	var old crdv1beta1.CustomResourceDefinition
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &old); err != nil {
		return nil, fmt.Errorf("cannot decode: %w", err)
	}
	crdv1beta1.SetObjectDefaults_CustomResourceDefinition(&old)
	var between apiextensions.CustomResourceDefinition
	if err := crdv1beta1.Convert_v1beta1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&old, &between, nil); err != nil {
		return nil, fmt.Errorf("cannot convert: %w", err)
	}
	var crd crdv1.CustomResourceDefinition
	if err := crdv1.Convert_apiextensions_CustomResourceDefinition_To_v1_CustomResourceDefinition(&between, &crd, nil); err != nil {
		return nil, fmt.Errorf("cannot convert: %w", err)
	}
	crd.APIVersion, crd.Kind = crdv1.SchemeGroupVersion.String(), kinds.CRD
	keepUnknownFields(&crd)
	return canonicalCRD(&crd)
}

// keepUnknownFields moves preserveUnknownFields of v1beta1 into the schemas.
func keepUnknownFields(crd *crdv1.CustomResourceDefinition) {
	keep := crd.Spec.PreserveUnknownFields
	crd.Spec.PreserveUnknownFields = false
	yes := true
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
			v.Schema = &crdv1.CustomResourceValidation{OpenAPIV3Schema: &crdv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &yes}}
			continue
		}
		// Versions can share a schema.
		v.Schema = v.Schema.DeepCopy()
		if v.Schema.OpenAPIV3Schema.Type == "" {
			v.Schema.OpenAPIV3Schema.Type = "object"
		}
		if keep {
			keepInRoot(v.Schema.OpenAPIV3Schema)
		}
	}
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
