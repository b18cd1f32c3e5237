package crdvalidation

import (
	"encoding/json"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kjson "sigs.k8s.io/json"

	"github.com/xpkg-dev/xpkg/pkg/xpkg/crd"
)

// CompositeCRDs returns the CRDs that the composition engine creates for an XRD: of the composite resource and, if the
// XRD has claimNames, of the claim.
func CompositeCRDs(text []byte) ([][]byte, error) {
	raw, err := crd.FromXRD(text)
	if err != nil {
		return nil, err
	}
	var d apiextensionsv1.CustomResourceDefinition
	var xrd struct {
		Spec struct {
			ClaimNames *apiextensionsv1.CustomResourceDefinitionNames `json:"claimNames"`
		} `json:"spec"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &d); err != nil {
		return nil, err
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &xrd); err != nil {
		return nil, err
	}
	if d.Spec.Scope != crd.LegacyCluster {
		out, err := withFields(d, crd.CompositeFields)
		return [][]byte{out}, err
	}
	claim := *d.DeepCopy()
	d.Spec.Scope = apiextensionsv1.ClusterScoped
	out, err := withFields(d, crd.LegacyCompositeFields)
	if err != nil || xrd.Spec.ClaimNames == nil {
		return [][]byte{out}, err
	}
	claim.Spec.Scope, claim.Spec.Names = apiextensionsv1.NamespaceScoped, *xrd.Spec.ClaimNames
	second, err := withFields(claim, crd.ClaimFields)
	return [][]byte{out, second}, err
}

// withFields returns the JSON of a CRD with fields of the composition engine, which accept any value, and of the API
// server.
func withFields(d apiextensionsv1.CustomResourceDefinition, spec []string) ([]byte, error) {
	for i := range d.Spec.Versions {
		v := &d.Spec.Versions[i]
		if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
			v.Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object",
			}}
		}
		root := v.Schema.OpenAPIV3Schema
		addProperties(root, "", "apiVersion", "kind", "metadata")
		addProperties(root, "spec", spec...)
		addProperties(root, "status", crd.StatusFields...)
	}
	d.APIVersion, d.Kind = apiextensionsv1.SchemeGroupVersion.String(), "CustomResourceDefinition"
	return json.Marshal(d)
}

// addProperties adds missing properties to a property of a schema, or to the schema itself.
func addProperties(s *apiextensionsv1.JSONSchemaProps, of string, names ...string) {
	if s.Properties == nil {
		s.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
	}
	if of != "" {
		child := s.Properties[of]
		if child.Type == "" {
			child.Type = "object"
		}
		addProperties(&child, "", names...)
		s.Properties[of] = child
		return
	}
	for _, name := range names {
		if _, ok := s.Properties[name]; ok {
			continue
		}
		switch name {
		case "apiVersion", "kind":
			s.Properties[name] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		case "metadata":
			s.Properties[name] = apiextensionsv1.JSONSchemaProps{Type: "object"}
		default:
			preserve := true
			s.Properties[name] = apiextensionsv1.JSONSchemaProps{XPreserveUnknownFields: &preserve}
		}
	}
}
