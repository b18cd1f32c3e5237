package index

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// The summary of an indexed object equals the summary of the object.
func TestIndexContainsSummaries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-zA-Z0-9./"\\-]{0,6}`)
		pairs := rapid.MapOfN(text, text, 0, 4)
		object := map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{
				"name": "o", "labels": pairs.Draw(t, "labels"), "annotations": pairs.Draw(t, "annotations"),
			},
		}
		doc, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		cold, err := xpkg.Read([]byte(meta("Provider")+"---\n"+string(doc)), xpkg.ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		index, err := New(cold)
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := Decode(Encode(index))
		if err != nil {
			t.Fatal(err)
		}
		// There is no blob: none of this needs the JSON.
		warm, err := decoded.Package(nil, xpkg.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		got, want := warm.Objects[0], cold.Objects[0]
		if diff := cmp.Diff(summary(t, want), summary(t, got)); diff != "" {
			t.Fatal(diff)
		}
		json, err := want.JSON()
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range []xpkg.Object{got, want} {
			if sum := summary(t, o).SHA256; sum != sha256.Sum256(json) {
				t.Fatalf("got %x", sum)
			}
		}
	})
}

// Packages were published with indexes of the first version, which do not have summaries.
func TestFirstVersion(t *testing.T) {
	pkg, index, blob := indexed(t)
	index.Version = 1
	text := Encode(index)
	first, err := Decode(text)
	if err != nil || first.Version != 1 {
		t.Fatalf("version %d, %v", first.Version, err)
	}
	if err := first.Matches(pkg); err != nil {
		t.Error(err)
	}
	if !bytes.Equal(Encode(first), text) {
		t.Error("it is written in another form")
	}
	warm, err := first.Package(bytes.NewReader(blob), xpkg.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range warm.Objects {
		if diff := cmp.Diff(summary(t, pkg.Objects[i]), summary(t, o)); diff != "" {
			t.Error(diff)
		}
	}
}

// An index that lies about labels does not match the package.
func TestWrongLabelsDoNotMatch(t *testing.T) {
	pkg, index, _ := indexed(t)
	index.Objects[0].Labels = map[string]string{"a": "lie"}
	if err := index.Matches(pkg); !errors.Is(err, ErrDamaged) {
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

// A package from an index keeps none of the JSON that was read.
func TestIndexedPackageKeepsNoJSON(t *testing.T) {
	_, index, raw := indexed(t)
	blob := &counting{Reader: bytes.NewReader(raw)}
	pkg, err := index.Package(blob, xpkg.Limits{})
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

// summary returns the summary of an object.
func summary(t interface {
	Helper()
	Fatal(args ...any)
}, o xpkg.Object) xpkg.Summary {
	t.Helper()
	s, err := o.Summary()
	if err != nil {
		t.Fatal(err)
	}
	return s
}
