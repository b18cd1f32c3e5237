package index

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
)

func meta(kind string) string {
	return "apiVersion: meta.pkg.crossplane.io/v1\nkind: " + kind + "\nmetadata: {name: x}\n"
}

func object(apiVersion, kind string) string {
	return "---\napiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata: {name: o}\n"
}

// indexed returns a package, its index and the blob beside it.
func indexed(t testing.TB) (*xpkg.Package, *Index, []byte) {
	t.Helper()
	stream := meta("Function") + object("apiextensions.k8s.io/v1", "CustomResourceDefinition") +
		strings.Replace(object("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition"), "name: o", "name: q", 1)
	pkg, err := xpkg.Read([]byte(stream), xpkg.ReadOptions{File: "x.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	index, err := New(pkg)
	if err != nil {
		t.Fatal(err)
	}
	texts, err := Blob(pkg)
	if err != nil {
		t.Fatal(err)
	}
	return pkg, index, bytes.Join(texts, nil)
}

func TestIndexGivesThePackageBack(t *testing.T) {
	pkg, index, blob := indexed(t)
	decoded, err := Decode(Encode(index))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(index, decoded, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	warm, err := decoded.Package(bytes.NewReader(blob), xpkg.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(pkg.Meta, warm.Meta, cmpopts.IgnoreFields(xpkg.Meta{}, "Raw")); diff != "" {
		t.Error(diff)
	}
	for i, o := range warm.Objects {
		want, _ := pkg.Objects[i].JSON()
		got, err := o.JSON()
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("object %d: got %s, %v", i, got, err)
		}
		if p := pkg.Objects[i]; o.GVK != p.GVK || o.Name != p.Name || o.Line != p.Line || o.Index != p.Index ||
			o.File != p.File {
			t.Errorf("object %d: got %v of %s:%d", i, o.GVK, o.File, o.Line)
		}
	}
	if err := decoded.Matches(warm); err != nil {
		t.Error(err)
	}
	if len(check.Package(warm, check.Options{})) == 0 {
		t.Error("a package from an index cannot be checked")
	}
}

func TestMetaIndexContainsAllDependencies(t *testing.T) {
	stream := strings.Replace(meta("Configuration"), "metadata: {name: x}", `metadata:
  name: x
  annotations: {meta.xpkg.dev/optional-dependencies: "- {provider: x/p, version: v1}"}
spec:
  dependsOn: [{function: x/f, version: ">=v1.0.0"}]`, 1)
	want, err := xpkg.ReadMeta([]byte(stream), xpkg.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	x, err := NewMeta(want)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := Decode(Encode(x))
	if err != nil {
		t.Fatal(err)
	}
	got, err := decoded.ReadMeta(xpkg.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Dependencies(), got.Dependencies()); diff != "" || len(got.Dependencies()) != 2 {
		t.Error(diff)
	}
}

func TestDamagedObjectsAreNoticed(t *testing.T) {
	_, index, blob := indexed(t)
	for name, damaged := range map[string][]byte{
		"changed": append(bytes.Clone(blob[:3]), append([]byte("X"), blob[4:]...)...),
		"short":   blob[:5],
		"empty":   nil,
	} {
		pkg, err := index.Package(bytes.NewReader(damaged), xpkg.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pkg.Objects[0].JSON(); !errors.Is(err, ErrDamaged) || errcode.From(err).Code.Class != errcode.Untrusted {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestDamagedIndexIsNoticed(t *testing.T) {
	pkg, index, blob := indexed(t)
	text := Encode(index)
	for i := range text {
		if _, err := Decode(text[:i]); !errors.Is(err, ErrDamaged) {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
	if _, err := Decode(append(bytes.Clone(text), 0)); !errors.Is(err, ErrDamaged) {
		t.Errorf("too long: %v", err)
	}
	other := bytes.Clone(text)
	other[len(magic)]++
	if _, err := Decode(other); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "another version") {
		t.Errorf("another version: %v", err)
	}
	for name, change := range map[string]func(x *Index){
		"metadata":       func(x *Index) { x.Meta = []byte(`{"apiVersion":"meta.pkg.crossplane.io/v1","kind":"Provider"}`) },
		"name":           func(x *Index) { x.Objects[1].Name = "x" },
		"hash":           func(x *Index) { x.Objects[0].SHA256[0]++ },
		"missing object": func(x *Index) { x.Objects = x.Objects[:1] },
	} {
		lying, _ := Decode(text)
		change(lying)
		if err := lying.Matches(pkg); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, bad := range []string{
		"", "{", `{"kind": "K"}`, `{"kind":"K","apiVersion":"v1"}`, `{"kind":"K"}`, `{"apiVersion":"v1","kind":"K"}`, "[]",
	} {
		lying, _ := Decode(text)
		lying.Meta = []byte(bad)
		if _, err := lying.Package(bytes.NewReader(blob), xpkg.Limits{}); !errors.Is(err, ErrDamaged) {
			t.Errorf("metadata %q: %v", bad, err)
		}
	}
}

func FuzzIndex(f *testing.F) {
	_, index, blob := indexed(f)
	f.Add(Encode(index), blob)
	f.Add([]byte(magic+"\x01"), []byte{})
	f.Fuzz(func(t *testing.T, text, blob []byte) {
		x, err := Decode(text)
		if err != nil {
			return
		}
		again, err := Decode(Encode(x))
		if err != nil {
			t.Fatalf("what was encoded cannot be decoded: %v", err)
		}
		if diff := cmp.Diff(x, again, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
		pkg, err := x.Package(bytes.NewReader(blob), xpkg.Limits{})
		if err != nil {
			return
		}
		for _, o := range pkg.Objects {
			_, _ = o.JSON() // must not panic
		}
	})
}
