package faults_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// thing is one object of a package. Its name says what becomes of it: what is kept
// is of every version, what is dropped of the first, what is added of the second,
// and the newest of the fourth. The third is one that is refused.
type thing struct {
	kind string
	name string
	spec map[string]any
}

var apiVersions = map[string]string{
	"CustomResourceDefinition":    "apiextensions.k8s.io/v1",
	"CompositeResourceDefinition": "apiextensions.crossplane.io/v2",
	"Composition":                 "apiextensions.crossplane.io/v1",
}

// definition is a small definition of the group of a round. The text is what
// differs between versions.
func definition(group, what, text string) thing {
	kind := "Kind" + what
	return thing{kind: "CustomResourceDefinition", name: what + "s." + group, spec: map[string]any{
		"group": group, "scope": "Cluster",
		"names": map[string]any{"kind": kind, "listKind": kind + "List", "plural": what + "s", "singular": what},
		"versions": []any{map[string]any{
			"name": "v1", "served": true, "storage": true,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "description": text,
				"properties": map[string]any{"spec": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		}},
	}}
}

func composite(group, text string) thing {
	return thing{kind: "CompositeResourceDefinition", name: "xkepts." + group, spec: map[string]any{
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

func composition(group, what, text string) thing {
	return thing{kind: "Composition", name: what + "." + group, spec: map[string]any{
		"compositeTypeRef": map[string]any{"apiVersion": group + "/v1", "kind": "XKept"},
		"mode":             "Pipeline",
		"pipeline":         []any{map[string]any{"step": text, "functionRef": map[string]any{"name": "function-any"}}},
	}}
}

// things are the objects of one version of the package of a round.
func things(kind, group, version string) []thing {
	other := map[string]string{"v1": "dropped", "v2": "added", "v3": "added", "v4": "newest"}[version]
	if kind == v1.ConfigurationKind {
		return []thing{composite(group, version), composition(group, "kept", version), composition(group, other, version)}
	}
	all := []thing{definition(group, "kept", version), definition(group, other, version)}
	if version == "v3" {
		// Another package holds it.
		all = append(all, definition(heldGroup, "held", version))
	}
	return all
}

// heldGroup is that of a definition that all packages of version v3 want and none
// can have.
const heldGroup = "held.faults.test"

// stream is package.yaml.
func stream(t testing.TB, kind, name string, all []thing) []byte {
	t.Helper()
	documents := []any{map[string]any{
		"apiVersion": "meta.pkg.crossplane.io/v1", "kind": kind, "metadata": map[string]any{"name": name},
	}}
	for _, o := range all {
		documents = append(documents, map[string]any{
			"apiVersion": apiVersions[o.kind], "kind": o.kind, "metadata": map[string]any{"name": o.name}, "spec": o.spec,
		})
	}
	var out bytes.Buffer
	for _, d := range documents {
		raw, err := yaml.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "---\n%s", raw)
	}
	return out.Bytes()
}

// push puts a package into the registry.
func push(t testing.TB, ref string, packageYAML []byte) {
	t.Helper()
	ctx := context.Background()
	image, err := image.Build(ctx, image.Input{PackageYAML: packageYAML})
	if err != nil {
		t.Fatal(err)
	}
	to, err := oci.ParseReference(ref, oci.ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	remote := remote.New(remote.Options{})
	defer remote.Close()
	if _, err := remote.Push(ctx, to, image); err != nil {
		t.Fatal(err)
	}
}
