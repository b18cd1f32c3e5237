package judgement

import (
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/xpkg-dev/xpkg/pkg/crddiff"
)

type schema = apiextensionsv1.JSONSchemaProps

// schemaOf returns the schema of a version of a CRD, or nil if it has no such version.
func schemaOf(crd *apiextensionsv1.CustomResourceDefinition, version string) *schema {
	for _, v := range crd.Spec.Versions {
		switch {
		case v.Name != version:
		case v.Schema == nil || v.Schema.OpenAPIV3Schema == nil:
			return &schema{}
		default:
			return v.Schema.OpenAPIV3Schema
		}
	}
	return nil
}

// relevant returns the changes of the versions of a course that can affect custom resources.
func (c course) relevant(from, to *apiextensionsv1.CustomResourceDefinition) []crddiff.Change {
	var out []crddiff.Change
	for _, change := range crddiff.CRD(from, to) {
		concerns := change.Version == c.checked ||
			c.converts && (change.Version == c.storedLive || change.Version == c.storedFuture)
		if concerns && c.affects(change, from, to) {
			out = append(out, change)
		}
	}
	return out
}

// affects reports whether a custom resource can be affected by a change.
func (c course) affects(change crddiff.Change, from, to *apiextensionsv1.CustomResourceDefinition) bool {
	switch change.Type {
	case crddiff.VersionAdded, crddiff.VersionRemoved, crddiff.VersionServed, crddiff.VersionNotServed,
		crddiff.VersionDeprecated, crddiff.VersionNotDeprecated, crddiff.StoredVersionRemoved,
		crddiff.ColumnsChanged, crddiff.SelectableFieldAdded, crddiff.SelectableFieldRemoved, crddiff.DocumentationChanged:
		return false
	case crddiff.StorageMoved:
		return c.converts && !reflect.DeepEqual(schemaOf(to, c.storedFuture), schemaOf(to, c.checked))
	case crddiff.SubresourceAdded, crddiff.SubresourceRemoved:
		return change.Subject == "scale"
	case crddiff.FieldAdded:
		return change.Class != crddiff.Safe || addsDefaults(schemaOf(from, change.Version), schemaOf(to, change.Version))
	case crddiff.RequiredRemoved, crddiff.EnumRemoved, crddiff.EnumValuesAdded, crddiff.ConstraintLoosened,
		crddiff.ConstraintChanged, crddiff.RuleRemoved, crddiff.RuleChanged, crddiff.UnknownFieldsKept:
		return change.Class != crddiff.Safe
	default:
		return true
	}
}

// addsDefaults reports whether a schema has fields with defaults that the former one does not describe.
func addsDefaults(a, b *schema) bool {
	if a == nil || b == nil {
		return false
	}
	for name := range b.Properties {
		next := b.Properties[name]
		was, existed := a.Properties[name]
		if existed && addsDefaults(&was, &next) || !existed && hasSchema(&next, hasDefault) {
			return true
		}
	}
	if a.Items != nil && b.Items != nil && addsDefaults(a.Items.Schema, b.Items.Schema) {
		return true
	}
	return a.AdditionalProperties != nil && b.AdditionalProperties != nil &&
		addsDefaults(a.AdditionalProperties.Schema, b.AdditionalProperties.Schema)
}

func hasDefault(s *schema) bool { return s.Default != nil }

// hasTransitions reports whether a schema has a rule for changes.
func hasTransitions(s *schema) bool {
	return s != nil && hasSchema(s, func(s *schema) bool {
		return slices.ContainsFunc(s.XValidations, func(r apiextensionsv1.ValidationRule) bool {
			return strings.Contains(r.Rule, "oldSelf")
		})
	})
}

// hasSchema reports whether a condition holds for a schema or one below it.
func hasSchema(s *schema, is func(*schema) bool) bool {
	if s == nil {
		return false
	}
	if is(s) {
		return true
	}
	for name := range s.Properties {
		if p := s.Properties[name]; hasSchema(&p, is) {
			return true
		}
	}
	for i := range s.AllOf {
		if hasSchema(&s.AllOf[i], is) {
			return true
		}
	}
	return s.Items != nil && hasSchema(s.Items.Schema, is) ||
		s.AdditionalProperties != nil && hasSchema(s.AdditionalProperties.Schema, is)
}
