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

// A bundle is a provider of n real definitions, under names that no other bundle
// has: what the API server still remembers of the one before is no help, and no
// hindrance.
type bundle struct {
	tag   string
	files [][]byte
}

const (
	// largest is the largest provider of the corpus.
	largest = "providers/crossplane-contrib__provider-upjet-aws@v2.6.0/package/crds"
	// changedLabel is on those definitions that an upgrade changes.
	changedLabel = "bench.xpkg.dev/changed"
	// changedShare is the share of definitions that an upgrade changes: one in ten.
	changedShare = 10
)

// readDefinitions reads n of the definitions in a folder, evenly spread over all
// of them, so that few are like many.
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

// newBundle renames definitions. A tag has three letters, as the name that it
// takes the place of, so that all bundles are of one length.
func newBundle(tag string, files [][]byte) bundle {
	b := bundle{tag: tag, files: make([][]byte, len(files))}
	for i, f := range files {
		f = bytes.ReplaceAll(f, []byte("aws.upbound.io"), []byte(tag+".upbound.io"))
		b.files[i] = bytes.ReplaceAll(f, []byte("aws.m.upbound.io"), []byte(tag+".m.upbound.io"))
	}
	return b
}

func (b bundle) packageName() string { return "bench-" + b.tag }

// has reports whether a definition of that name is of the bundle.
func (b bundle) has(name string) bool {
	return strings.HasSuffix(name, "."+b.tag+".upbound.io") || strings.HasSuffix(name, "."+b.tag+".m.upbound.io")
}

// stream is the package.yaml of the bundle.
func (b bundle) stream() []byte { return provider(b.packageName(), b.files) }

func provider(name string, files [][]byte) []byte {
	out := bytes.NewBufferString("apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: " + name + "\n")
	for _, f := range files {
		if !bytes.HasPrefix(f, []byte("---")) {
			out.WriteString("---\n")
		}
		out.Write(f)
	}
	return out.Bytes()
}

// upgraded is the bundle with every tenth definition changed, in its schema and by
// a label that tells it, and how many those are.
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
	version["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)["description"] = "Changed by an upgrade."
	out, err := yaml.Marshal(crd)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// unrelated is a small provider that has nothing in common with any bundle.
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
