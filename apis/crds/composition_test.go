package crds

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// TestCompositionCoversUpstream proves that every kind and version of the groups
// of composition that upstream serves is served by our permissive definitions
// too, with the names, subresources and columns of the newest upstream.
func TestCompositionCoversUpstream(t *testing.T) {
	mine := ours(t, Composition)
	for _, version := range []string{"v1.20.11", "v2.3.4", newest} {
		for name, theirs := range upstream(t, version) {
			if isPackageCRD(name) || strings.HasSuffix(name, ".secrets.crossplane.io") {
				continue // Stores of connection secrets are no part of any package.
			}
			crd := mine[name]
			if crd == nil {
				t.Errorf("%s of %s is missing", name, version)
				continue
			}
			for _, v := range theirs.Spec.Versions {
				if v.Served && find(crd, v.Name) == nil {
					t.Errorf("%s of %s is missing its version %s", name, version, v.Name)
				}
			}
			if version == newest {
				compareOutside(t, theirs, crd)
			}
		}
	}
}

// No package can take the CRDs that the manager or a release of Crossplane installs.
func TestTheCRDsOfTheManagerAndOfCrossplaneAreReserved(t *testing.T) {
	all := ours(t, Packages)
	for name, crd := range ours(t, Composition) {
		all[name] = crd
	}
	for _, version := range []string{"v1.14.0", "v1.20.11", "v2.0.0", "v2.3.4", newest} {
		for name, crd := range upstream(t, version) {
			all[name] = crd
		}
	}
	for name, crd := range all {
		group := schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural}
		if !rbac.Reserved(group) {
			t.Errorf("%s is not reserved", name)
		}
	}
}

// compareOutside compares the CRDs without their schemas.
func compareOutside(t *testing.T, theirs, mine *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	if diff := cmp.Diff(theirs.Spec.Names, mine.Spec.Names); diff != "" {
		t.Errorf("%s: names (-upstream +ours):\n%s", mine.Name, diff)
	}
	if theirs.Spec.Scope != mine.Spec.Scope {
		t.Errorf("%s: scope is %s, want %s", mine.Name, mine.Spec.Scope, theirs.Spec.Scope)
	}
	for _, v := range theirs.Spec.Versions {
		m := find(mine, v.Name)
		if m == nil {
			continue
		}
		if diff := cmp.Diff(v.AdditionalPrinterColumns, m.AdditionalPrinterColumns); diff != "" {
			t.Errorf("%s %s: columns (-upstream +ours):\n%s", mine.Name, v.Name, diff)
		}
		if hasStatus(v) != hasStatus(*m) || v.Storage != m.Storage {
			t.Errorf("%s %s: status is %v and storage %v, want %v and %v",
				mine.Name, v.Name, hasStatus(*m), m.Storage, hasStatus(v), v.Storage)
		}
	}
}

// TestCompositionIsPermissive proves that the CRDs are marked as permissive, and preserve all
// fields of an object.
func TestCompositionIsPermissive(t *testing.T) {
	for name, crd := range ours(t, Composition) {
		if crd.Labels[LabelPermissive] != "true" {
			t.Errorf("%s is not marked", name)
		}
		for _, v := range crd.Spec.Versions {
			doc := `{apiVersion: g/v, kind: K, metadata: {name: n}, spec: {a: [{b: 1}]}}`
			if strings.HasPrefix(name, "environmentconfigs.") {
				doc = strings.Replace(doc, "spec", "data", 1)
			}
			object := parse(t, doc)
			if errs := submit(t, crd, v.Name, object); len(errs) > 0 {
				t.Errorf("%s %s: %v", name, v.Name, errs)
			}
			if diff := cmp.Diff(parse(t, doc), object); diff != "" {
				t.Errorf("%s %s changes an object:\n%s", name, v.Name, diff)
			}
		}
	}
}

func find(
	crd *apiextensionsv1.CustomResourceDefinition, version string,
) *apiextensionsv1.CustomResourceDefinitionVersion {
	for i, v := range crd.Spec.Versions {
		if v.Name == version {
			return &crd.Spec.Versions[i]
		}
	}
	return nil
}

func hasStatus(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
	return v.Subresources != nil && v.Subresources.Status != nil
}
