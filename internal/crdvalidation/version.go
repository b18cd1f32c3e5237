package crdvalidation

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// Version processes custom resources in a version of a CRD as the API server does. It is safe for concurrent use.
type Version struct {
	structural *structuralschema.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator
	scale      *apiextensionsv1.CustomResourceSubresourceScale
	// keepsUnknown reports that the CRD has spec.preserveUnknownFields.
	keepsUnknown bool
}

// NewVersion returns a version of a CRD, which must have it.
func NewVersion(crd *apiextensionsv1.CustomResourceDefinition, name string) (v *Version, err error) {
	defer catch(&err)
	i := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == name
	})
	if i < 0 {
		return nil, fmt.Errorf("the CustomResourceDefinition has no version %s", name)
	}
	from := crd.Spec.Versions[i]
	if from.Schema == nil || from.Schema.OpenAPIV3Schema == nil {
		v = &Version{structural: &structuralschema.Structural{
			Generic: structuralschema.Generic{Type: "object"}, Extensions: structuralschema.Extensions{XPreserveUnknownFields: true},
		}}
	} else {
		var props apiextensions.JSONSchemaProps
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
			from.Schema.OpenAPIV3Schema, &props, nil,
		); err != nil {
			return nil, err
		}
		if v, err = newVersion(&props); err != nil {
			return nil, err
		}
	}
	v.keepsUnknown = crd.Spec.PreserveUnknownFields
	if from.Subresources != nil {
		v.scale = from.Subresources.Scale
	}
	return v, nil
}

func newVersion(props *apiextensions.JSONSchemaProps) (*Version, error) {
	structural, err := structuralschema.NewStructural(props)
	if err != nil {
		return nil, err
	}
	// The defaults belong to the schema, and pruning changes them.
	structural = structural.DeepCopy()
	if err := defaulting.PruneDefaults(structural); err != nil {
		return nil, err
	}
	validator, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		return nil, err
	}
	return &Version{
		structural: structural, validator: validator, rules: cel.NewValidator(structural, true, celconfig.PerCallLimit),
	}, nil
}

// Schema returns the structural schema, which must not be changed.
func (v *Version) Schema() *structuralschema.Structural { return v.structural }

// Prune drops what the API server drops when it reads or converts a resource: fields that the schema does not describe,
// and null where it is not allowed.
func (v *Version) Prune(resource map[string]any) {
	if !v.keepsUnknown {
		pruning.Prune(resource, v.structural, true)
		defaulting.PruneNonNullableNullsWithoutDefaults(resource, v.structural)
	}
	// Without an error for malformed metadata, which is dropped.
	_ = objectmeta.Coerce(nil, resource, v.structural, false, true)
}

// Read processes a stored resource as the API server does when it reads it: it drops fields and sets defaults.
func (v *Version) Read(resource map[string]any) {
	v.Prune(resource)
	defaulting.Default(resource, v.structural)
}

// setDefaults sets the defaults of a resource, also in place of null.
func (v *Version) setDefaults(resource map[string]any) {
	defaulting.PruneNonNullableNullsWithoutDefaults(resource, v.structural)
	defaulting.Default(resource, v.structural)
}

// ValidateCreate returns the errors of the schema that the API server returns when a resource is created. Found are
// errors that were found before.
func (v *Version) ValidateCreate(ctx context.Context, resource map[string]any, found ...*field.Error) field.ErrorList {
	all := validation.ValidateCustomResource(nil, resource, v.validator)
	all = append(all, v.validateScale(resource)...)
	all = append(all, objectmeta.Validate(ctx, nil, resource, v.structural, false)...)
	all = append(all, listtype.ValidateListSetsAndMaps(nil, v.structural, resource)...)
	if v.rules == nil || slices.ContainsFunc(found, preventsRules) || slices.ContainsFunc(all, preventsRules) {
		return all
	}
	rules, _ := v.rules.Validate(ctx, nil, v.structural, resource, nil, celconfig.RuntimeCELCostBudget)
	return append(all, rules...)
}

// ValidateUpdate is like ValidateCreate for an update of a resource: fields that do not change may keep values that are
// not valid, and rules for changes are evaluated.
func (v *Version) ValidateUpdate(ctx context.Context, resource, former map[string]any) field.ErrorList {
	correlated := common.NewCorrelatedObject(resource, former, &model.Structural{Structural: v.structural})
	all := validation.ValidateCustomResourceUpdate(
		nil, resource, former, v.validator, validation.WithRatcheting(correlated),
	)
	all = append(all, v.validateScale(resource)...)
	all = append(all, objectmeta.Validate(ctx, nil, resource, v.structural, false)...)
	if len(listtype.ValidateListSetsAndMaps(nil, v.structural, former)) == 0 {
		all = append(all, listtype.ValidateListSetsAndMaps(nil, v.structural, resource)...)
	}
	if v.rules == nil || slices.ContainsFunc(all, preventsRules) {
		return all
	}
	rules, _ := v.rules.Validate(
		ctx, nil, v.structural, resource, former, celconfig.RuntimeCELCostBudget, cel.WithRatcheting(correlated),
	)
	return append(all, rules...)
}

// validateScale returns the errors of the fields that the subresource scale uses.
func (v *Version) validateScale(resource map[string]any) field.ErrorList {
	if v.scale == nil {
		return nil
	}
	var all field.ErrorList
	for _, path := range []string{v.scale.SpecReplicasPath, v.scale.StatusReplicasPath} {
		n, _, err := unstructured.NestedInt64(resource, strings.Split(strings.TrimPrefix(path, "."), ".")...)
		switch {
		case err != nil:
			all = append(all, field.Invalid(field.NewPath(path), n, err.Error()))
		case n < 0:
			all = append(all, field.Invalid(field.NewPath(path), n, "should be a non-negative integer"))
		case n > math.MaxInt32:
			all = append(all, field.Invalid(
				field.NewPath(path), n, fmt.Sprintf("should be less than or equal to %v", math.MaxInt32),
			))
		}
	}
	if path := v.scale.LabelSelectorPath; path != nil {
		selector, _, err := unstructured.NestedString(resource, strings.Split(strings.TrimPrefix(*path, "."), ".")...)
		if err != nil {
			all = append(all, field.Invalid(field.NewPath(*path), selector, err.Error()))
		}
	}
	return all
}

// preventsRules reports whether the API server evaluates no rules of a resource with an error.
func preventsRules(e *field.Error) bool {
	switch e.Type {
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany,
		field.ErrorTypeTypeInvalid:
		return true
	}
	return false
}
