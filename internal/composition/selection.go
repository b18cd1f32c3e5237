package composition

import (
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Definition has the fields of the definition of a composite resource that affect the selection of its composition.
type Definition struct {
	// Default and Enforced are names of compositions, or empty.
	Default, Enforced string
}

// With returns the fields of a definition, which is JSON, if it defines a kind of composite resources, and otherwise d.
func (d Definition) With(raw []byte, kind schema.GroupKind) Definition {
	var xrd struct {
		Spec struct {
			Group string `json:"group"`
			Names struct {
				Kind string `json:"kind"`
			} `json:"names"`
			Default  reference `json:"defaultCompositionRef"`
			Enforced reference `json:"enforcedCompositionRef"`
		} `json:"spec"`
	}
	if json.Unmarshal(raw, &xrd) != nil || kind != (schema.GroupKind{Group: xrd.Spec.Group, Kind: xrd.Spec.Names.Kind}) {
		return d
	}
	return Definition{Default: xrd.Spec.Default.Name, Enforced: xrd.Spec.Enforced.Name}
}

type reference struct {
	Name string `json:"name"`
}

// Select returns the composition of a composite resource, as Crossplane selects it: the enforced one of its definition,
// the one that the resource refers to, those with the labels of its selector, or the default of its definition. A name
// that is not empty selects the composition with this name. Select fails with CompositionInvalid if not exactly one
// composition is left.
func Select(xr *unstructured.Unstructured, all []Composition, d Definition, name string) (Composition, error) {
	ofKind := slices.DeleteFunc(slices.Clone(all), func(c Composition) bool {
		return c.Spec.CompositeTypeRef.APIVersion != xr.GetAPIVersion() || c.Spec.CompositeTypeRef.Kind != xr.GetKind()
	})
	what := xr.GetKind() + " of " + xr.GetAPIVersion()
	if len(ofKind) == 0 {
		return Composition{},
			ErrCompositionInvalid.New(nil, "there is no composition for %s", what).WithDo("%s", kindsAdvice(all))
	}
	selector, reference := setting(xr, "compositionSelector", "matchLabels"), setting(xr, "compositionRef", "name")
	wanted, _ := reference.(string)
	byLabels, _ := selector.(map[string]any)
	switch {
	case name != "":
		wanted, byLabels = name, nil
	case d.Enforced != "":
		wanted, byLabels = d.Enforced, nil
	case wanted != "":
		byLabels = nil
	case len(byLabels) == 0:
		wanted = d.Default
	}
	fitting := slices.DeleteFunc(slices.Clone(ofKind), func(c Composition) bool {
		return wanted != "" && c.Name != wanted || !labels.SelectorFromSet(textValues(byLabels)).Matches(labels.Set(c.Labels))
	})
	switch {
	case len(fitting) == 1:
		return fitting[0], nil
	case wanted != "":
		return Composition{}, ErrCompositionInvalid.New(nil, "there is no composition %s for %s", wanted, what).
			WithDo("Select one of %s.", names(ofKind))
	case len(fitting) == 0:
		return Composition{}, ErrCompositionInvalid.New(
			nil, "no composition for %s has the labels of spec.compositionSelector", what,
		).WithDo("Select one of %s.", names(ofKind))
	}
	return Composition{}, ErrCompositionInvalid.New(nil, "there are %d compositions for %s", len(fitting), what).
		WithDo("Select one with --composition: %s.", names(fitting))
}

// setting returns a field of the settings of a composite resource for Crossplane, which are in spec.crossplane, or in
// spec in former versions.
func setting(xr *unstructured.Unstructured, path ...string) any {
	for _, parent := range [][]string{{"spec", "crossplane"}, {"spec"}} {
		if value, ok, err := unstructured.NestedFieldNoCopy(xr.Object, append(parent, path...)...); ok && err == nil {
			return value
		}
	}
	return nil
}

func textValues(m map[string]any) labels.Set {
	out := labels.Set{}
	for key, value := range m {
		out[key], _ = value.(string)
	}
	return out
}

func names(all []Composition) string {
	var out []string
	for _, c := range all {
		out = append(out, c.Name)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func kindsAdvice(all []Composition) string {
	var kinds []string
	for _, c := range all {
		kinds = append(kinds, c.Spec.CompositeTypeRef.Kind+" of "+c.Spec.CompositeTypeRef.APIVersion)
	}
	if len(kinds) == 0 {
		return "Name the file of a composition, or a package that contains one with --package."
	}
	slices.Sort(kinds)
	return "Correct apiVersion and kind of the composite resource; there are compositions for " +
		strings.Join(slices.Compact(kinds), ", ") + "."
}
