package author

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds of Crossplane's composition.
var (
	compositionKind     = schema.GroupKind{Group: "apiextensions.crossplane.io", Kind: "Composition"}
	compositeDefinition = schema.GroupKind{Group: "apiextensions.crossplane.io", Kind: "CompositeResourceDefinition"}
)

// validateComposition validates the kind of the composite resource of a Composition, and the templates of its resources:
// in steps of function-patch-and-transform, and in spec.resources. It validates the inputs of functions whose packages have a
// schema for them.
func (v *resourceValidation) validateComposition(r resource) {
	before := len(v.findings)
	spec := object(r.object["spec"])
	v.requireKind(r, "spec.compositeTypeRef.kind", kindOf(object(spec["compositeTypeRef"])))
	v.validateTemplates(r, "spec.", spec)
	steps, _ := spec["pipeline"].([]any)
	for i, step := range steps {
		input := object(object(step)["input"])
		path := fmt.Sprintf("spec.pipeline[%d].input", i)
		if isPatchAndTransform(input) {
			v.validateTemplates(r, path+".", input)
		}
		if kind := kindOf(input); v.schemas.Has(kind) {
			v.validateTemplate(r, path, input)
		}
	}
	if len(v.findings) > before {
		v.invalid++
	}
}

// validateTemplates validates the base of each element of a list "resources".
func (v *resourceValidation) validateTemplates(r resource, path string, parent map[string]any) {
	templates, _ := parent["resources"].([]any)
	for i, t := range templates {
		base := object(object(t)["base"])
		if base == nil {
			continue
		}
		at := fmt.Sprintf("%sresources[%d].base", path, i)
		if kind := kindOf(base); v.requireKind(r, at+".kind", kind) && v.schemas.Has(kind) {
			v.validateTemplate(r, at, base)
		}
	}
}

func (v *resourceValidation) validateTemplate(r resource, path string, template map[string]any) {
	for _, p := range v.schemas.ValidateTemplate(template) {
		v.report(r, ErrInvalidResource, strings.TrimSuffix(path+"."+p.Path, "."), p.Message)
	}
}

// requireKind reports a kind that no package defines. It returns false if it did.
func (v *resourceValidation) requireKind(r resource, path string, kind schema.GroupVersionKind) bool {
	if v.schemas.Has(kind) || isCoreKind(kind.Group) {
		return true
	}
	v.report(r, ErrKindWithoutSchema, path, v.unknownKind(kind))
	return false
}

func isPatchAndTransform(input map[string]any) bool {
	kind := kindOf(input)
	return kind.Group == "pt.fn.crossplane.io" && kind.Kind == "Resources"
}

// kindOf returns the kind of an object with apiVersion and kind.
func kindOf(o map[string]any) schema.GroupVersionKind {
	apiVersion, _ := o["apiVersion"].(string)
	kind, _ := o["kind"].(string)
	return schema.FromAPIVersionAndKind(apiVersion, kind)
}

// object returns a JSON object, or nil for any other value.
func object(value any) map[string]any {
	o, _ := value.(map[string]any)
	return o
}
