package apis

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xpkg-dev/xpkg/apis/crds"
)

// TestSchemeContainsServedKinds shows that every version of every definition has a
// Go type and a list, and that no Go type stands for two kinds.
func TestSchemeContainsServedKinds(t *testing.T) {
	s := runtime.NewScheme()
	if err := AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	definitions, err := crds.Packages()
	if err != nil {
		t.Fatal(err)
	}
	if len(definitions) != 12 {
		t.Errorf("there are %d definitions, want 12", len(definitions))
	}
	for _, crd := range definitions {
		for _, v := range crd.Spec.Versions {
			for _, kind := range []string{crd.Spec.Names.Kind, crd.Spec.Names.ListKind} {
				if _, ok := s.AllKnownTypes()[schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: kind}]; !ok {
					t.Errorf("no Go type for %s %s of %s", kind, v.Name, crd.Name)
				}
			}
		}
	}
	for gvk := range s.AllKnownTypes() {
		if !strings.HasSuffix(gvk.Group, "pkg.crossplane.io") || strings.HasSuffix(gvk.Kind, "Options") ||
			gvk.Kind == "WatchEvent" {
			continue
		}
		object, err := s.New(gvk)
		if err != nil {
			t.Fatal(err)
		}
		if gvks, _, err := s.ObjectKinds(object); err != nil || len(gvks) != 1 {
			t.Errorf("%T stands for %v (%v)", object, gvks, err)
		}
	}
}
