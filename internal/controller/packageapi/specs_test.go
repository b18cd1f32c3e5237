package packageapi

import (
	"encoding/json"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/xpkg-dev/xpkg/apis/crds"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/pkg/desired"
)

// The API server stores exactly the CRDs that the manager writes, apart from defaults, so a start writes none of them
// again; a change of one field in any of them is found.
func TestLiveSpecsAreCompared(t *testing.T) {
	c, err := apply.NewCluster(cluster.Start(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Install(t.Context(), c, Options{}); err != nil {
		t.Fatal(err)
	}
	own, err := crds.Packages()
	if err != nil {
		t.Fatal(err)
	}
	set, err := desired.Definitions(own)
	if err != nil {
		t.Fatal(err)
	}
	specs, err := newSpecs(set)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range set.Desired() {
		o, exists, err := c.Object(t.Context(), d.Ref)
		if err != nil || !exists {
			t.Fatalf("%s: exists %t, %v", d.Ref.Name, exists, err)
		}
		if !specs.isWritten(d, o) {
			t.Errorf("%s differs from the written one", d.Ref.Name)
		}
		changed := o
		changed.JSON = withoutSchema(t, o.JSON)
		if specs.isWritten(d, changed) {
			t.Errorf("%s is not compared by its spec", d.Ref.Name)
		}
		specs.accept(changed)
		if !specs.isWritten(d, changed) || !specs.isWritten(d, o) {
			t.Errorf("%s: the result of a write is written again", d.Ref.Name)
		}
	}
}

// withoutSchema returns a CRD without the properties of its first version.
func withoutSchema(t *testing.T, raw []byte) []byte {
	t.Helper()
	var d apiextensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Fatal(err)
	}
	d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties = nil
	out, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
