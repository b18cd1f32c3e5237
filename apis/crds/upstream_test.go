package crds

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
)

// upstream returns Crossplane's own definitions at a version, by their names.
func upstream(t *testing.T, version string) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	pattern := filepath.Join(corpus.Dir(t), "core-crds", "crossplane__crossplane@"+version+
		"*", "cluster", "crds", "*.yaml")
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatalf("the corpus has no definitions of Crossplane %s", version)
	}
	out := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(b, crd); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out[crd.Name] = crd
	}
	return out
}

// ours returns the definitions of this repository, by their names.
func ours(
	t *testing.T, load func() ([]*apiextensionsv1.CustomResourceDefinition, error),
) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crds, err := load()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, crd := range crds {
		out[crd.Name] = crd
	}
	return out
}

func isPackageCRD(name string) bool { return strings.HasSuffix(name, ".pkg.crossplane.io") }
