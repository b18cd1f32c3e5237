package compose

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/cli/dependencies"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Kinds of Crossplane's composition.
var (
	compositionKind     = schema.GroupKind{Group: "apiextensions.crossplane.io", Kind: "Composition"}
	compositeDefinition = schema.GroupKind{Group: "apiextensions.crossplane.io", Kind: "CompositeResourceDefinition"}
)

// knownFunction is a function to which a Composition may refer.
type knownFunction struct {
	// names are the names of the Function object.
	names []string
	// definesInputs reports whether its package defines the kinds of its inputs.
	definesInputs bool
}

// addFunction adds the function in a package with the names that its object may have.
func (v *resourceValidation) addFunction(p *xpkg.Package, names ...string) {
	if p.Meta.Kind != xpkg.Function {
		return
	}
	isCRD := func(o xpkg.Object) bool { return o.GVK.Kind == plan.DefinitionKind }
	v.functions = append(v.functions, knownFunction{names: names, definesInputs: slices.ContainsFunc(p.Objects, isCRD)})
}

// addInstalledFunctions adds the Functions among the resources. Their packages are not known, and so are their inputs.
func (v *resourceValidation) addInstalledFunctions(resources []resource) {
	for _, r := range resources {
		if r.kind.Group == v1.Group && r.kind.Kind == v1.FunctionKind {
			v.functions = append(v.functions, knownFunction{names: []string{r.name}})
		}
	}
}

// validateComposition validates the kind of the composite resource of a Composition, the names of its functions, and
// the templates of its resources: in steps of function-patch-and-transform, and in spec.resources. It validates the
// inputs of functions whose packages have a schema for them.
func (v *resourceValidation) validateComposition(r resource) {
	before := len(v.findings)
	spec := object(r.object["spec"])
	v.requireKind(r, "spec.compositeTypeRef.kind", kindOf(object(spec["compositeTypeRef"])))
	v.validateTemplates(r, "spec.", spec)
	steps, _ := spec["pipeline"].([]any)
	for i, step := range steps {
		v.validateStep(r, fmt.Sprintf("spec.pipeline[%d].", i), object(step))
	}
	if len(v.findings) > before {
		v.invalid++
	}
}

// validateStep validates the name of the function and the input of a step of a pipeline.
func (v *resourceValidation) validateStep(r resource, at string, step map[string]any) {
	name, _ := object(step["functionRef"])["name"].(string)
	known := slices.IndexFunc(v.functions, func(f knownFunction) bool { return slices.Contains(f.names, name) })
	if known < 0 && name != "" {
		v.report(r, ErrFunctionUnknown, at+"functionRef.name", v.unknownFunction(name))
	}
	input := object(step["input"])
	if isPatchAndTransform(input) {
		v.validateTemplates(r, at+"input.", input)
	}
	switch kind := kindOf(input); {
	case v.schemas.Has(kind):
		v.validateTemplate(r, at+"input", input)
	case input != nil && known >= 0 && v.functions[known].definesInputs:
		v.report(r, ErrKindWithoutSchema, at+"input.kind", v.unknownKind(kind))
	}
}

// unknownFunction describes a function that is not known, and names those that are.
func (v *resourceValidation) unknownFunction(name string) string {
	text := "no package provides the function " + name
	var names []string
	for _, f := range v.functions {
		names = append(names, f.names[0])
	}
	if len(names) == 0 {
		return text
	}
	return text + "; known functions: " + strings.Join(names, ", ")
}

// functionNames returns the names that the Function object of a package may have: the one that a cluster gives to a
// dependency, and those of the package and of its repository, which users choose.
func functionNames(p dependencies.Content) []string {
	return []string{p.Name, p.Meta.Name, path.Base(p.Locked.Repository)}
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
