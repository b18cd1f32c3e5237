package judgement

import (
	"maps"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/xpkg-dev/xpkg/internal/crdvalidation"
)

// loss is a value that an object loses.
type loss struct {
	// path is the path in the form of package crddiff: keys of maps and items of lists are [*].
	path string
	// isNull reports that the value is null.
	isNull bool
}

// anyItem is the path element of the items of a list and the values of a map.
const anyItem = "[*]"

// Lost returns a function that returns the paths of the values that an object loses when it is stored in another
// version of a CRD than the given one, in which it is before. Keys of maps and items of lists are [*].
func Lost(
	crd *apiextensionsv1.CustomResourceDefinition, version string,
) (func(before, after map[string]any) []string, error) {
	v, err := crdvalidation.NewVersion(crd, version)
	if err != nil {
		return nil, err
	}
	observes := Observes(crd, version)
	return func(before, after map[string]any) []string {
		var out []string
		for _, l := range lostValues(v.Schema(), before, after, observes) {
			if !l.isNull && !slices.Contains(out, l.path) {
				out = append(out, l.path)
			}
		}
		return out
	}, nil
}

// Observes reports whether the status of the custom resources of a version is a subresource: what controllers observe,
// and write again.
func Observes(crd *apiextensionsv1.CustomResourceDefinition, version string) bool {
	return slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == version && v.Subresources != nil && v.Subresources.Status != nil
	})
}

// lostValues returns the values that are only in the first of two versions of an object. A null that is replaced by
// another value is not lost, nor is the default of a field, which the API server adds to every object that it reads,
// nor is the status if controllers observe it.
func lostValues(s *structuralschema.Structural, before, after map[string]any, observes bool) []loss {
	var out []loss
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if name == "apiVersion" || name == "kind" || name == "metadata" || name == "status" && observes {
			continue
		}
		out = append(out, lostIn(s, "", name, before, after)...)
	}
	return out
}

// lostIn returns the values that a field of a map loses.
func lostIn(s *structuralschema.Structural, path, name string, before, after map[string]any) []loss {
	path, s = child(s, path, name)
	value, kept := after[name]
	if !kept {
		if isDefault(s, before[name]) {
			return nil
		}
		return []loss{{path, before[name] == nil}}
	}
	return lostValue(s, path, before[name], value)
}

// isDefault reports whether a value is the default of its schema, with the defaults of the fields in it.
func isDefault(s *structuralschema.Structural, value any) bool {
	if s == nil || s.Default.Object == nil {
		return false
	}
	def := runtime.DeepCopyJSONValue(s.Default.Object)
	defaulting.Default(def, s)
	return reflect.DeepEqual(value, def)
}

func lostValue(s *structuralschema.Structural, path string, before, after any) []loss {
	var out []loss
	switch b := before.(type) {
	case map[string]any:
		a, ok := after.(map[string]any)
		if !ok {
			return []loss{{path: path}}
		}
		for _, name := range slices.Sorted(maps.Keys(b)) {
			out = append(out, lostIn(s, path, name, b, a)...)
		}
	case []any:
		a, ok := after.([]any)
		if !ok || len(a) != len(b) {
			return []loss{{path: path}}
		}
		for i := range b {
			out = append(out, lostValue(itemsOf(s), path+anyItem, b[i], a[i])...)
		}
	case nil:
	default:
		if !reflect.DeepEqual(before, after) {
			return []loss{{path: path}}
		}
	}
	return out
}

// child returns the path and the schema of a field of an object. The keys of a map are [*]; the schema is nil for a
// field that is kept without one.
func child(s *structuralschema.Structural, path, name string) (string, *structuralschema.Structural) {
	if s == nil {
		return path + "." + name, nil
	}
	if p, ok := s.Properties[name]; ok {
		return path + "." + name, &p
	}
	if s.AdditionalProperties != nil {
		return path + anyItem, s.AdditionalProperties.Structural
	}
	return path + "." + name, nil
}

func itemsOf(s *structuralschema.Structural) *structuralschema.Structural {
	if s == nil {
		return nil
	}
	return s.Items
}
