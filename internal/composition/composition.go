// Package composition renders composite resources: it runs the pipeline of a composition as Crossplane does, without a
// cluster, and returns the resources that Crossplane would apply.
package composition

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/internal/function/protocol"
)

// Group is the API group of compositions and of the definitions of composite resources.
const Group = "apiextensions.crossplane.io"

// modePipeline is the mode of a composition with a pipeline of functions.
const modePipeline = "Pipeline"

// Composition is a composition in the mode Pipeline.
type Composition struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              Spec `json:"spec"`
}

// Spec is the specification of a composition.
type Spec struct {
	// CompositeTypeRef is the kind of the composite resources.
	CompositeTypeRef metav1.TypeMeta `json:"compositeTypeRef"`
	Mode             string          `json:"mode"`
	Pipeline         []Step          `json:"pipeline"`
}

// Step is a step of a pipeline: the call of a function.
type Step struct {
	Step        string `json:"step"`
	FunctionRef struct {
		Name string `json:"name"`
	} `json:"functionRef"`
	Input       map[string]any `json:"input"`
	Credentials []struct {
		Name      string     `json:"name"`
		Source    string     `json:"source"`
		SecretRef *SecretRef `json:"secretRef"`
	} `json:"credentials"`
	Requirements struct {
		RequiredResources []Requirement       `json:"requiredResources"`
		RequiredSchemas   []SchemaRequirement `json:"requiredSchemas"`
	} `json:"requirements"`
}

// SecretRef names a secret.
type SecretRef struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Requirement selects resources that a function gets at its first call.
type Requirement struct {
	Name        string            `json:"requirementName"`
	APIVersion  string            `json:"apiVersion"`
	Kind        string            `json:"kind"`
	ObjectName  string            `json:"name"`
	Namespace   string            `json:"namespace"`
	MatchLabels map[string]string `json:"matchLabels"`
}

// SchemaRequirement selects a kind whose schema a function gets at its first call.
type SchemaRequirement struct {
	Name string `json:"requirementName"`
	protocol.SchemaSelector
}

// Parse returns a composition. It fails with CompositionInvalid for another kind, and for a composition without a
// pipeline, which it returns too.
func Parse(raw []byte, source string) (Composition, error) {
	var c Composition
	if err := json.Unmarshal(raw, &c); err != nil {
		return c, ErrCompositionInvalid.New(err, "cannot read the composition in %s", source)
	}
	refuse := func(format string, args ...any) (Composition, error) {
		return c, ErrCompositionInvalid.New(nil, "the composition "+c.Name+" in "+source+" "+format, args...)
	}
	if c.Kind != "Composition" || c.GroupVersionKind().Group != Group {
		return Composition{},
			ErrCompositionInvalid.New(nil, "%s contains %s of %s and not a composition", source, c.Kind, c.APIVersion)
	}
	if c.Spec.Mode != modePipeline || len(c.Spec.Pipeline) == 0 {
		return c, ErrCompositionInvalid.New(nil, "the composition %s in %s has no pipeline", c.Name, source).
			WithDo(
				"Set spec.mode to Pipeline, and use functions such as function-patch-and-transform in place of spec.resources.",
			)
	}
	seen := map[string]bool{}
	for i, s := range c.Spec.Pipeline {
		switch {
		case s.Step == "":
			return refuse("has no name in spec.pipeline[%d].step", i)
		case seen[s.Step]:
			return refuse("has two steps %s", s.Step)
		case s.FunctionRef.Name == "":
			return refuse("has no function in the step %s", s.Step)
		}
		seen[s.Step] = true
	}
	return c, nil
}

// Functions returns the names of the functions of the pipeline, each once, in the order of the steps.
func (c Composition) Functions() []string {
	var out []string
	seen := map[string]bool{}
	for _, s := range c.Spec.Pipeline {
		if !seen[s.FunctionRef.Name] {
			seen[s.FunctionRef.Name] = true
			out = append(out, s.FunctionRef.Name)
		}
	}
	return out
}
