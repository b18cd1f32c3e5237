package xpkg

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

const tagged = `
apiVersion: v1
kind: K
metadata:
  name: o
  annotations: {a: b, number: 1, nothing: null, "quo\"te": "li\nne"}
  labels: {l: "", deep: {x: y}}
  other: {labels: {no: "no"}}
spec: {metadata: {labels: {no: "no"}}}
`

// Tags are those of the object and of nothing in it.
func TestTags(t *testing.T) {
	for text, want := range map[string]tags{
		tagged:                      {labels: map[string]string{"l": ""}, annotations: map[string]string{"a": "b", "quo\"te": "li\nne"}},
		"{apiVersion: v1, kind: K}": {},
		"{apiVersion: v1, kind: K, metadata: null, spec: {labels: {a: b}}}":               {},
		"{apiVersion: v1, kind: K, metadata: [labels]}":                                   {},
		"{apiVersion: v1, kind: K, metadata: {labels: null, annotations: 1}}":             {},
		"{apiVersion: v1, kind: K, metadata: {labels: {}, annotations: []}}":              {},
		"{apiVersion: v1, kind: K, metadata: {name: x, labels: {b: c}, zlabels: {d: e}}}": {labels: map[string]string{"b": "c"}},
	} {
		json, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, readTags(json), cmp.AllowUnexported(tags{})); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

// What an index says of an object is what the object says.
func TestIndexKnowsTags(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-zA-Z0-9./"\\-]{0,6}`)
		pairs := rapid.MapOfN(text, text, 0, 4)
		object := map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": "o", "labels": pairs.Draw(t, "labels"), "annotations": pairs.Draw(t, "annotations")},
		}
		doc, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		cold, err := Read([]byte(meta(Provider)+"---\n"+string(doc)), ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		index, err := NewIndex(cold)
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := DecodeIndex(EncodeIndex(index))
		if err != nil {
			t.Fatal(err)
		}
		// There is no blob: none of this needs the JSON.
		warm, err := decoded.Package(nil, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		got, want := warm.Objects[0], cold.Objects[0]
		if diff := cmp.Diff([]any{want.Labels(), want.Annotations()}, []any{got.Labels(), got.Annotations()}); diff != "" {
			t.Fatal(diff)
		}
		json, err := want.JSON()
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range []Object{got, want} {
			if sum, err := o.SHA256(); err != nil || sum != sha256.Sum256(json) {
				t.Fatalf("got %x (%v)", sum, err)
			}
		}
	})
}

// Packages were published with indexes of the first version.
func TestFirstIndexVersion(t *testing.T) {
	pkg, index, blob := indexed(t)
	index.Version = 1
	text := EncodeIndex(index)
	first, err := DecodeIndex(text)
	if err != nil || first.Version != 1 {
		t.Fatalf("version %d, %v", first.Version, err)
	}
	if err := first.Matches(pkg); err != nil {
		t.Error(err)
	}
	if !bytes.Equal(EncodeIndex(first), text) {
		t.Error("it is written in another form")
	}
	warm, err := first.Package(bytes.NewReader(blob), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range warm.Objects {
		want, err := pkg.Objects[i].SHA256()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := o.SHA256(); err != nil || got != want {
			t.Errorf("object %d: got %x (%v)", i, got, err)
		}
		if diff := cmp.Diff(pkg.Objects[i].Labels(), o.Labels()); diff != "" {
			t.Error(diff)
		}
	}
}

// An index that lies about labels is noticed by whoever proves it.
func TestIndexThatLiesAboutLabels(t *testing.T) {
	pkg, index, _ := indexed(t)
	index.Objects[0].Labels = map[string]string{"a": "lie"}
	if err := index.Matches(pkg); !errors.Is(err, ErrDamagedIndex) {
		t.Errorf("got %v", err)
	}
}

// counting counts the reads of a blob.
type counting struct {
	*bytes.Reader
	reads int
}

func (c *counting) ReadAt(p []byte, off int64) (int, error) {
	c.reads++
	return c.Reader.ReadAt(p, off)
}

// A package from an index keeps none of the JSON that was asked for.
func TestIndexedPackageKeepsNothing(t *testing.T) {
	_, index, raw := indexed(t)
	blob := &counting{Reader: bytes.NewReader(raw)}
	pkg, err := index.Package(blob, Limits{})
	if err != nil || blob.reads != 0 {
		t.Fatalf("%d reads, %v", blob.reads, err)
	}
	one := 0
	for want := range 3 {
		before := blob.reads
		if _, err := pkg.Objects[0].JSON(); err != nil {
			t.Fatal(err)
		}
		if n := blob.reads - before; want == 0 {
			one = n
		} else if n != one || n == 0 {
			t.Errorf("read %d: %d reads instead of %d", want, n, one)
		}
	}
}
