package faults_test

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// object is one object of a package. Its name states the versions that contain it: all contain kept,
// the first contains dropped, the second added, and the fourth newest. The third version is refused.
type object struct {
	kind string
	name string
	spec map[string]any
}

var apiVersions = map[string]string{
	"CustomResourceDefinition":    "apiextensions.k8s.io/v1",
	"CompositeResourceDefinition": "apiextensions.crossplane.io/v2",
	"Composition":                 "apiextensions.crossplane.io/v1",
}

// definition returns a small CRD in the group of an instance. The text differs between versions.
func definition(group, what, text string) object {
	kind := "Kind" + what
	return object{kind: "CustomResourceDefinition", name: what + "s." + group, spec: map[string]any{
		"group": group, "scope": "Cluster",
		"names": map[string]any{"kind": kind, "listKind": kind + "List", "plural": what + "s", "singular": what},
		"versions": []any{map[string]any{
			"name": "v1", "served": true, "storage": true,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "description": text,
				"properties": map[string]any{"spec": map[string]any{
					"type": "object", "x-kubernetes-preserve-unknown-fields": true,
				}},
			}},
		}},
	}}
}

func composite(group, text string) object {
	return object{kind: "CompositeResourceDefinition", name: "xkepts." + group, spec: map[string]any{
		"group": group, "scope": "Cluster",
		"names": map[string]any{"kind": "XKept", "plural": "xkepts"},
		"versions": []any{map[string]any{
			"name": "v1", "served": true, "referenceable": true,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "description": text,
				"properties": map[string]any{"spec": map[string]any{"type": "object"}},
			}},
		}},
	}}
}

func composition(group, what, text string) object {
	return object{kind: "Composition", name: what + "." + group, spec: map[string]any{
		"compositeTypeRef": map[string]any{"apiVersion": group + "/v1", "kind": "XKept"},
		"mode":             "Pipeline",
		"pipeline":         []any{map[string]any{"step": text, "functionRef": map[string]any{"name": "function-any"}}},
	}}
}

// objectsOf returns the objects of one version of the package of an instance.
func objectsOf(kind, group, version string) []object {
	other := map[string]string{"v1": "dropped", "v2": "added", "v3": "added", "v4": "newest"}[version]
	if kind == v1.ConfigurationKind {
		return []object{composite(group, version), composition(group, "kept", version), composition(group, other, version)}
	}
	all := []object{definition(group, "kept", version), definition(group, other, version)}
	if version == "v3" {
		// Another package owns it.
		all = append(all, definition(heldGroup, "held", version))
	}
	return all
}

// heldGroup is the group of a CRD that the version v3 of all packages contains and another package
// owns.
const heldGroup = "held.faults.test"

// packageYAML returns the package.yaml of a package.
func packageYAML(t testing.TB, kind, name string, all []object) string {
	t.Helper()
	documents := []any{map[string]any{
		"apiVersion": "meta.pkg.crossplane.io/v1", "kind": kind, "metadata": map[string]any{"name": name},
	}}
	for _, o := range all {
		documents = append(documents, map[string]any{
			"apiVersion": apiVersions[o.kind], "kind": o.kind, "metadata": map[string]any{"name": o.name}, "spec": o.spec,
		})
	}
	var out strings.Builder
	for _, d := range documents {
		raw, err := yaml.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "---\n%s", raw)
	}
	return out.String()
}
