package crd

import (
	"encoding/json"

	crdv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kjson "sigs.k8s.io/json"

	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/canonical"
)

// LegacyCluster is the scope of XRDs whose composite resources are cluster-scoped and can have claims.
const LegacyCluster crdv1.ResourceScope = "LegacyCluster"

// Fields that composition engines add to the specification of a composite resource, of a cluster-scoped one and of a
// claim, and to the status of all of them.
var (
	CompositeFields       = []string{"crossplane"}
	LegacyCompositeFields = []string{
		"claimRef", "compositionRef", "compositionRevisionRef", "compositionRevisionSelector", "compositionSelector",
		"compositionUpdatePolicy",
		"environmentConfigRefs", "publishConnectionDetailsTo", "resourceRefs", "writeConnectionSecretToRef",
	}
	ClaimFields = []string{
		"compositeDeletePolicy", "compositionRef", "compositionRevisionRef", "compositionRevisionSelector",
		"compositionSelector", "compositionUpdatePolicy",
		"publishConnectionDetailsTo", "resourceRef", "writeConnectionSecretToRef",
	}
	StatusFields = []string{"claimConditionTypes", "conditions", "connectionDetails", "crossplane"}
)

// ScopeOfXRD returns the scope of a CompositeResourceDefinition: the one that it states, or the default of its API
// version.
func ScopeOfXRD(apiVersion string, stated crdv1.ResourceScope) crdv1.ResourceScope {
	switch {
	case stated != "":
		return stated
	case apiVersion == "apiextensions.crossplane.io/v2":
		return crdv1.NamespaceScoped
	default:
		return LegacyCluster
	}
}

// FromXRD returns the JSON of a CRD with the kind, the scope and the schemas of a CompositeResourceDefinition, without
// the fields that a composition engine adds. The scope is that of the XRD: Namespaced, Cluster or LegacyCluster. An XRD
// without a scope has the default of its API version.
func FromXRD(text []byte) ([]byte, error) {
	var xrd struct {
		APIVersion string `json:"apiVersion"`
		Spec       struct {
			Group      string                              `json:"group"`
			Scope      crdv1.ResourceScope                 `json:"scope"`
			Names      crdv1.CustomResourceDefinitionNames `json:"names"`
			Conversion *crdv1.CustomResourceConversion     `json:"conversion"`
			Versions   []struct {
				Name                     string                                 `json:"name"`
				Served                   bool                                   `json:"served"`
				Referenceable            bool                                   `json:"referenceable"`
				Deprecated               bool                                   `json:"deprecated"`
				DeprecationWarning       *string                                `json:"deprecationWarning"`
				AdditionalPrinterColumns []crdv1.CustomResourceColumnDefinition `json:"additionalPrinterColumns"`
				Schema                   *crdv1.CustomResourceValidation        `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &xrd); err != nil {
		return nil, err
	}
	out := crdv1.CustomResourceDefinition{}
	out.Spec.Group, out.Spec.Scope, out.Spec.Names, out.Spec.Conversion = xrd.Spec.Group,
		ScopeOfXRD(xrd.APIVersion, xrd.Spec.Scope), xrd.Spec.Names, xrd.Spec.Conversion
	for _, v := range xrd.Spec.Versions {
		out.Spec.Versions = append(out.Spec.Versions, crdv1.CustomResourceDefinitionVersion{
			Name: v.Name, Served: v.Served, Storage: v.Referenceable, Deprecated: v.Deprecated,
			DeprecationWarning: v.DeprecationWarning, Schema: v.Schema,
			AdditionalPrinterColumns: v.AdditionalPrinterColumns,
		})
	}
	converted, err := json.Marshal(out)
	return canonical.Normalize(converted), err
}
