package validation

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/spelling"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// Kinds of Crossplane's composition.
var (
	CompositionKind = schema.GroupKind{Group: "apiextensions.crossplane.io", Kind: "Composition"}
	DefinitionKind  = schema.GroupKind{Group: "apiextensions.crossplane.io", Kind: "CompositeResourceDefinition"}
)

// function is a function to which a Composition may refer.
type function struct {
	// name is the name that a cluster gives to the function as a dependency, and others are those of users.
	name   string
	others []string
	// definesInputs reports whether its package defines the kinds of its inputs.
	definesInputs bool
}

// AddFunction adds the function in a package. Name is that of its object in a cluster, and others are the names that
// users may give it. DefinesInputs reports whether the package defines the kinds of its inputs.
func (v *Validation) AddFunction(definesInputs bool, name string, others ...string) {
	v.functions = append(v.functions, function{name: name, others: others, definesInputs: definesInputs})
}

// DefinesInputs reports whether the package of a function defines the kinds of its inputs.
func DefinesInputs(p *xpkg.Package) bool {
	return slices.ContainsFunc(p.Objects, func(o xpkg.Object) bool { return o.GVK.GroupKind() == crdKind })
}

// FunctionNames returns the names that the Function object of a package may have besides that of a dependency: those of
// the package and of its repository, which users choose.
func FunctionNames(name, repository string) []string { return []string{name, path.Base(repository)} }

// AddDependencies adds the functions among the direct dependencies of a package.
func (v *Validation) AddDependencies(meta xpkg.Meta) {
	for _, d := range meta.Dependencies() {
		ref, err := oci.ParseReference(d.Package, oci.ParseOptions{AllowUntagged: true})
		switch {
		case d.Kind != string(xpkg.Function) && d.Kind != string(xpkg.Provider), err != nil:
			v.AnyFunction = true
		case d.Kind == string(xpkg.Function):
			v.AddFunction(false, oci.ToDNSLabel(ref.Repository), path.Base(ref.Repository))
		}
	}
}

// AddInstalledFunctions adds the Functions among the resources. Their packages are not known, and so are their inputs.
func (v *Validation) AddInstalledFunctions(resources []Resource) {
	for _, r := range resources {
		if r.Kind.Group == v1.Group && r.Kind.Kind == v1.FunctionKind {
			v.AddFunction(false, r.Name, r.Name)
		}
	}
}

// IsComposition reports whether a document is a Composition.
func IsComposition(d xpkg.Document) bool {
	var kind struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	return d.Decode(&kind) == nil &&
		schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind).GroupKind() == CompositionKind
}

// Compositions returns the Compositions of a package.
func Compositions(p *xpkg.Package) []xpkg.Document {
	var out []xpkg.Document
	for _, o := range p.Objects {
		if o.GVK.GroupKind() == CompositionKind {
			out = append(out, o.Document)
		}
	}
	return out
}

// validateComposition validates the kind of the composite resource of a Composition, the names of its functions, and
// the templates of its resources: in steps of function-patch-and-transform, and in spec.resources. It validates the
// inputs of functions whose packages have a schema for them.
func (v *Validation) validateComposition(r Resource) {
	spec := Object(r.Object["spec"])
	c := composition{Validation: v, resource: r, composite: KindOf(Object(spec["compositeTypeRef"]))}
	v.requireKind(r, "spec.compositeTypeRef.kind", c.composite)
	steps, _ := spec["pipeline"].([]any)
	c.applied = len(steps) > 0
	c.final = !slices.ContainsFunc(steps, changesResources)
	c.validateResources("spec.", spec)
	for i, step := range steps {
		c.validateStep(fmt.Sprintf("spec.pipeline[%d].", i), Object(step))
	}
}

// composition is a Composition whose validation goes on.
type composition struct {
	*Validation
	resource  Resource
	composite schema.GroupVersionKind
	// final reports whether no function changes the resources of function-patch-and-transform.
	final bool
	// applied reports whether an API server rejects unknown fields of resources, as it does for server-side apply. Without
	// a pipeline, it drops them.
	applied bool
}

// passive are the ends of the names of functions that do not change composed resources.
var passive = []string{
	"function-auto-ready", "function-environment-configs", "function-extra-resources", "function-sequencer",
}

// changesResources reports whether a step can change the resources of function-patch-and-transform.
func changesResources(step any) bool {
	name, _ := Object(Object(step)["functionRef"])["name"].(string)
	return !isPatchAndTransform(Object(Object(step)["input"])) &&
		!slices.ContainsFunc(passive, func(end string) bool { return strings.HasSuffix(name, end) })
}

// validateStep validates the name of the function and the input of a step of a pipeline.
func (c *composition) validateStep(at string, step map[string]any) {
	name, _ := Object(step["functionRef"])["name"].(string)
	known := c.validateFunction(at+"functionRef.name", name)
	input := Object(step["input"])
	if isPatchAndTransform(input) {
		c.validateResources(at+"input.", input)
	}
	c.validateGoTemplates(at+"input.", input)
	switch kind := KindOf(input); {
	case c.Schemas.Has(kind):
		c.validateTemplate(at+"input", input, func(string) bool { return true })
	case input != nil && known != nil && known.definesInputs && len(c.Schemas.Similar(kind)) > 0:
		c.report(c.resource, ErrKindWithoutSchema, at+"input.kind", c.unknownKind(kind, false))
		c.warn() // Most functions ignore the kind.
	}
}

// validateFunction reports the name of a function that is not known, or that a cluster knows by another name. It
// returns the function, or nil.
func (c *composition) validateFunction(at, name string) *function {
	for i, f := range c.functions {
		if f.name == name {
			return &c.functions[i]
		}
	}
	for i, f := range c.functions {
		if slices.Contains(f.others, name) {
			c.report(c.resource, ErrFunctionName, at,
				fmt.Sprintf("a cluster names the function %s %s if it is a dependency", name, f.name))
			return &c.functions[i]
		}
	}
	if name != "" && !c.AnyFunction {
		c.report(c.resource, ErrFunctionUnknown, at, c.unknownFunction(name))
	}
	return nil
}

// unknownFunction describes a function that is not known, and names those that are.
func (c *composition) unknownFunction(name string) string {
	text := "no package provides the function " + name
	var names []string
	for _, f := range c.functions {
		names = append(names, f.name)
	}
	if len(names) == 0 {
		return text
	}
	for _, f := range c.functions {
		if spelling.Field(name, append(f.others, f.name)) != "" {
			text += fmt.Sprintf(", did you mean %q", f.name)
			break
		}
	}
	return text + "; known functions: " + strings.Join(names, ", ")
}

func (c *composition) validateTemplate(at string, template map[string]any, missing func(string) bool) {
	for _, p := range c.Schemas.ValidateTemplate(template, missing) {
		c.report(c.resource, ErrInvalidResource, strings.TrimSuffix(at+"."+p.Path, "."), p.Message)
	}
}

func isPatchAndTransform(input map[string]any) bool {
	kind := KindOf(input)
	return kind.Group == "pt.fn.crossplane.io" && kind.Kind == "Resources"
}
