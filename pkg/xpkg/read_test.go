package xpkg

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/pkg/dependency"
)

const providerMeta = `apiVersion: meta.pkg.crossplane.io/v1
kind: Provider
metadata:
  name: provider-example
`

func TestReadGivesMetaAndObjects(t *testing.T) {
	stream := `# a comment
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.org}
---
` + providerMeta + `spec:
  crossplane: {version: ">=v1.14.0"}
  dependsOn:
  - provider: example.org/a
    version: v1.0.0
`
	pkg, err := Read([]byte(stream), ReadOptions{Expect: Provider})
	if err != nil {
		t.Fatal(err)
	}
	want := []dependency.Dependency{{
		Package: "example.org/a", APIVersion: "pkg.crossplane.io/v1", Kind: string(Provider), Constraint: "v1.0.0",
	}}
	if diff := cmp.Diff(want, pkg.Meta.DependsOn); diff != "" {
		t.Error(diff)
	}
	if pkg.Meta.Crossplane != ">=v1.14.0" || pkg.Meta.Name != "provider-example" {
		t.Errorf("meta is %+v", pkg.Meta)
	}
	if len(pkg.Objects) != 1 || pkg.Objects[0].Name != "things.example.org" || pkg.Objects[0].Line != 3 {
		t.Errorf("objects are %+v", pkg.Objects)
	}
}
