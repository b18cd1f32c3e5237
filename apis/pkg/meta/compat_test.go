package meta_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/apis"
	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
)

// added are the fields that upstream's newest definitions no longer or never
// had, each with its reason.
var added = map[string]string{
	".spec.controller":         "packages guide, Provider Packages; upstream removed it in v2",
	".spec.image":              "functions of Crossplane before v2",
	".spec.permissionRequests": "package format, The Packaged Format",
	".spec.ignore":             "configurations that the first tools made",
	".spec.dependsOn[].crd":    "dependencies on kinds, which upstream does not have",
}

// relaxed are the fields that upstream requires and these types do not, each with its reason.
var relaxed = map[string]string{
	".spec.controller":          "upstream once required the controller; today's packages have none",
	".spec.dependsOn[].version": "a dependency on a kind has no version; all others are checked when metadata is read",
}

// TestCompatibility proves that the Go types have the fields, of the same types
// and as required, that upstream's definitions of the metadata have.
func TestCompatibility(t *testing.T) {
	s := runtime.NewScheme()
	if err := apis.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, version := range []string{"HEAD", "v2.3.4", "v1.20.11", "v1.14.0"} {
		pattern := filepath.Join(corpus.Dir(t), "core-crds", "crossplane__crossplane@"+version+
			"*", "cluster", "meta", "*.yaml")
		files, _ := filepath.Glob(pattern)
		if len(files) == 0 {
			t.Errorf("the corpus has no metadata definitions of Crossplane %s", version)
		}
		for _, name := range files {
			crd := load(t, name)
			for _, v := range crd.Spec.Versions {
				gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind}
				object, err := s.New(gvk)
				if err != nil {
					t.Error(err)
					continue
				}
				compare(t, used, version, gvk, v.Schema.OpenAPIV3Schema, reflect.TypeOf(object).Elem())
			}
		}
	}
	for field := range added {
		if !used[field] {
			t.Errorf("%s is no difference any more; remove it from the list", field)
		}
	}
}

func compare(
	t *testing.T, used map[string]bool, version string, gvk schema.GroupVersionKind,
	theirs *apiextensionsv1.JSONSchemaProps, mine reflect.Type,
) {
	t.Helper()
	a, b := map[string]string{}, map[string]string{}
	ofSchema(a, "", theirs, false)
	ofType(b, "", mine, false)
	for field, want := range a {
		if relaxed[field] != "" {
			want = strings.TrimSuffix(want, ", required")
		}
		if got := b[field]; got != want {
			t.Errorf("%v of %s: %s is %q, want %q", gvk, version, field, got, want)
		}
	}
	for field := range b {
		if _, ok := a[field]; ok || version != "HEAD" {
			continue
		}
		parts := strings.SplitN(strings.NewReplacer("[]", "").Replace(field), ".", 4)
		top := strings.Join(parts[:min(3, len(parts))], ".")
		if added[field] != "" {
			top = field
		}
		if used[top] = true; added[top] == "" {
			t.Errorf("%v: %s is ours alone", gvk, field)
		}
	}
}

// ofSchema writes down the type of each field of a schema, and whether it is
// required.
func ofSchema(out map[string]string, at string, s *apiextensionsv1.JSONSchemaProps, required bool) {
	out[at] = describe(s.Type, required)
	for name, p := range s.Properties {
		if at == "" && name == "metadata" {
			continue
		}
		ofSchema(out, at+"."+name, &p, slices.Contains(s.Required, name))
	}
	if s.Items != nil {
		ofSchema(out, at+"[]", s.Items.Schema, false)
	}
}

// ofType does the same with a Go type, as encoding/json sees it.
func ofType(out map[string]string, at string, t reflect.Type, required bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Struct:
		out[at] = describe("object", required)
		fields(out, at, t)
	case reflect.Slice:
		out[at] = describe("array", required)
		ofType(out, at+"[]", t.Elem(), false)
	default:
		out[at] = describe(t.Kind().String(), required)
	}
}

func fields(out map[string]string, at string, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" && strings.Contains(options, "inline"):
			fields(out, at, f.Type)
		case at == "" && name == "metadata":
		default:
			ofType(out, at+"."+name, f.Type, !strings.Contains(options, "omitempty"))
		}
	}
}

func describe(kind string, required bool) string {
	if required {
		return kind + ", required"
	}
	return kind
}

func load(t *testing.T, name string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(b, crd); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return crd
}
