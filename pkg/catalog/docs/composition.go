package docs

import (
	"encoding/json"

	kjson "sigs.k8s.io/json"

	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// A Composition is a Composition of a package, as far as it states itself what it composes.
type Composition struct {
	Name string
	// Composite is the kind of the composite resource.
	Composite TypeRef
	// Steps are in the order in which they run. A Composition without a pipeline has one step without a Function.
	Steps []Step
}

// A TypeRef names an API version of a kind.
type TypeRef struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// A Step is a step of a pipeline.
type Step struct {
	Name string
	// Function is the name of the object that installs the Function.
	Function string
	// Resources are those whose bases are in the input. Functions can compose others.
	Resources []ComposedResource
}

// A ComposedResource is a resource that a Composition composes.
type ComposedResource struct {
	Name string  `json:"name"`
	Base TypeRef `json:"base"`
}

// compositionOf reads a Composition. Fields of the wrong type are empty.
func compositionOf(o xpkg.Object) (Composition, error) {
	text, err := o.JSON()
	if err != nil {
		return Composition{}, err
	}
	type resources struct {
		Resources []ComposedResource `json:"resources"`
	}
	var object struct {
		Spec struct {
			resources
			CompositeTypeRef TypeRef `json:"compositeTypeRef"`
			Pipeline         []struct {
				Step        string `json:"step"`
				FunctionRef struct {
					Name string `json:"name"`
				} `json:"functionRef"`
				Input json.RawMessage `json:"input"`
			} `json:"pipeline"`
		} `json:"spec"`
	}
	_ = kjson.UnmarshalCaseSensitivePreserveInts(text, &object) // It decodes all fields of the right type.
	out := Composition{Name: o.Name, Composite: object.Spec.CompositeTypeRef}
	for _, s := range object.Spec.Pipeline {
		var input resources
		_ = kjson.UnmarshalCaseSensitivePreserveInts(s.Input, &input)
		out.Steps = append(out.Steps, Step{Name: s.Step, Function: s.FunctionRef.Name, Resources: withBase(input.Resources)})
	}
	if len(out.Steps) == 0 {
		out.Steps = []Step{{Resources: withBase(object.Spec.Resources)}}
	}
	return out, nil
}

// withBase returns the resources whose kind is known.
func withBase(all []ComposedResource) (out []ComposedResource) {
	for _, r := range all {
		if r.Base.APIVersion != "" && r.Base.Kind != "" {
			out = append(out, r)
		}
	}
	return out
}
