package bench_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// A bundle is a provider of n real CRDs whose names no other bundle has, so that the caches of the API
// server have no effect.
type bundle struct {
	tag   string
	files [][]byte
}

const (
	// largest is the largest provider of the corpus.
	largest = "providers/crossplane-contrib__provider-upjet-aws@v2.6.0/package/crds"
	// changedLabel is the label of the CRDs that an upgrade changes.
	changedLabel = "bench.xpkg.dev/changed"
	// changedDescription is the description of their schemas.
	changedDescription = "Changed by an upgrade."
	// changedShare is the share of CRDs that an upgrade changes: one in ten.
	changedShare = 10
)

// readDefinitions reads n of the CRDs in a directory, evenly distributed, so that each number is a
// representative sample.
func readDefinitions(t testing.TB, dir string, n int) [][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(paths) < n {
		t.Fatalf("%s has %d definitions, %d are needed (%v)", dir, len(paths), n, err)
	}
	files := make([][]byte, n)
	for i := range files {
		if files[i], err = os.ReadFile(paths[i*len(paths)/n]); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// newBundle renames CRDs. A tag has three letters, like the name that it replaces, so all bundles have
// the same size.
func newBundle(tag string, files [][]byte) bundle {
	b := bundle{tag: tag, files: make([][]byte, len(files))}
	for i, f := range files {
		f = bytes.ReplaceAll(f, []byte("aws.upbound.io"), []byte(tag+".upbound.io"))
		b.files[i] = bytes.ReplaceAll(f, []byte("aws.m.upbound.io"), []byte(tag+".m.upbound.io"))
	}
	return b
}

func (b bundle) packageName() string { return "bench-" + b.tag }

// has reports whether the CRD with a name belongs to the bundle.
func (b bundle) has(name string) bool {
	return strings.HasSuffix(name, "."+b.tag+".upbound.io") || strings.HasSuffix(name, "."+b.tag+".m.upbound.io")
}

// stream returns the package.yaml of the bundle.
func (b bundle) stream() []byte { return provider(b.packageName(), b.files) }

func provider(name string, files [][]byte) []byte {
	out := bytes.NewBufferString("apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: " + name +
		"\n")
	for _, f := range files {
		if !bytes.HasPrefix(f, []byte("---")) {
			out.WriteString("---\n")
		}
		out.Write(f)
	}
	return out.Bytes()
}

// upgraded returns the bundle with every tenth CRD changed in its schema and by a label, and the number
// of changed CRDs.
func (b bundle) upgraded(t testing.TB) (bundle, int) {
	t.Helper()
	out, changed := bundle{tag: b.tag, files: append([][]byte(nil), b.files...)}, 0
	for i := 0; i < len(out.files); i += changedShare {
		out.files[i] = changeDefinition(t, out.files[i])
		changed++
	}
	return out, changed
}

func changeDefinition(t testing.TB, raw []byte) []byte {
	t.Helper()
	var crd map[string]any
	if err := yaml.Unmarshal(raw, &crd); err != nil {
		t.Fatal(err)
	}
	crd["metadata"].(map[string]any)["labels"] = map[string]any{changedLabel: "true"}
	version := crd["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
	version["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)["description"] = changedDescription
	out, err := yaml.Marshal(crd)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// unrelated returns a small provider that shares nothing with any bundle.
func unrelated(version int) []byte {
	const definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: others.unrelated.test}
spec:
  group: unrelated.test
  names: {kind: Other, listKind: OtherList, plural: others, singular: other}
  scope: Cluster
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, description: Version %d.}}
`
	return provider(unrelatedName, [][]byte{fmt.Appendf(nil, definition, version)})
}

const unrelatedName = "unrelated"
