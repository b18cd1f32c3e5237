package xpkg

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// indexed gives a package, its index and the blob beside it.
func indexed(t testing.TB) (*Package, *Index, []byte) {
	t.Helper()
	stream := meta(Function) + object("apiextensions.k8s.io/v1", "CustomResourceDefinition") +
		strings.Replace(object("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition"), "name: o", "name: q", 1)
	pkg, err := Read([]byte(stream), ReadOptions{File: "x.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	index, err := NewIndex(pkg)
	if err != nil {
		t.Fatal(err)
	}
	texts, err := ObjectTexts(pkg)
	if err != nil {
		t.Fatal(err)
	}
	return pkg, index, bytes.Join(texts, nil)
}

func TestIndexGivesThePackageBack(t *testing.T) {
	pkg, index, blob := indexed(t)
	decoded, err := DecodeIndex(EncodeIndex(index))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(index, decoded, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	warm, err := decoded.Package(bytes.NewReader(blob), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(pkg.Meta, warm.Meta, cmpopts.IgnoreFields(Meta{}, "Raw")); diff != "" {
		t.Error(diff)
	}
	for i, o := range warm.Objects {
		want, _ := pkg.Objects[i].JSON()
		got, err := o.JSON()
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("object %d: got %s, %v", i, got, err)
		}
		if p := pkg.Objects[i]; o.GVK != p.GVK || o.Name != p.Name || o.Line != p.Line || o.Index != p.Index || o.File != p.File {
			t.Errorf("object %d: got %v of %s:%d", i, o.GVK, o.File, o.Line)
		}
	}
	if err := decoded.Matches(warm); err != nil {
		t.Error(err)
	}
	if len(Check(warm, CheckOptions{})) == 0 {
		t.Error("a package from an index cannot be checked")
	}
}

func TestDamagedObjectsAreNoticed(t *testing.T) {
	_, index, blob := indexed(t)
	for name, damaged := range map[string][]byte{
		"changed": append(bytes.Clone(blob[:3]), append([]byte("X"), blob[4:]...)...),
		"short":   blob[:5],
		"empty":   nil,
	} {
		pkg, err := index.Package(bytes.NewReader(damaged), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pkg.Objects[0].JSON(); !errors.Is(err, ErrDamagedIndex) || errcode.From(err).Code.Class != errcode.Untrusted {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestDamagedIndexIsNoticed(t *testing.T) {
	pkg, index, blob := indexed(t)
	text := EncodeIndex(index)
	for i := range text {
		if _, err := DecodeIndex(text[:i]); !errors.Is(err, ErrDamagedIndex) {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
	if _, err := DecodeIndex(append(bytes.Clone(text), 0)); !errors.Is(err, ErrDamagedIndex) {
		t.Errorf("too long: %v", err)
	}
	other := bytes.Clone(text)
	other[len(indexMagic)]++
	if _, err := DecodeIndex(other); !errors.Is(err, ErrDamagedIndex) || !strings.Contains(err.Error(), "another version") {
		t.Errorf("another version: %v", err)
	}
	for name, change := range map[string]func(x *Index){
		"metadata":       func(x *Index) { x.Meta = []byte(`{"apiVersion":"meta.pkg.crossplane.io/v1","kind":"Provider"}`) },
		"name":           func(x *Index) { x.Objects[1].Name = "x" },
		"hash":           func(x *Index) { x.Objects[0].SHA256[0]++ },
		"missing object": func(x *Index) { x.Objects = x.Objects[:1] },
	} {
		lying, _ := DecodeIndex(text)
		change(lying)
		if err := lying.Matches(pkg); !errors.Is(err, ErrDamagedIndex) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, bad := range []string{"", "{", `{"kind": "K"}`, `{"kind":"K","apiVersion":"v1"}`, `{"kind":"K"}`, `{"apiVersion":"v1","kind":"K"}`, "[]"} {
		lying, _ := DecodeIndex(text)
		lying.Meta = []byte(bad)
		if _, err := lying.Package(bytes.NewReader(blob), Limits{}); !errors.Is(err, ErrDamagedIndex) {
			t.Errorf("metadata %q: %v", bad, err)
		}
	}
}

func FuzzIndex(f *testing.F) {
	_, index, blob := indexed(f)
	f.Add(EncodeIndex(index), blob)
	f.Add([]byte(indexMagic+"\x01"), []byte{})
	f.Fuzz(func(t *testing.T, text, blob []byte) {
		x, err := DecodeIndex(text)
		if err != nil {
			return
		}
		again, err := DecodeIndex(EncodeIndex(x))
		if err != nil {
			t.Fatalf("what was encoded cannot be decoded: %v", err)
		}
		if diff := cmp.Diff(x, again, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
		pkg, err := x.Package(bytes.NewReader(blob), Limits{})
		if err != nil {
			return
		}
		for _, o := range pkg.Objects {
			_, _ = o.JSON() // must not panic
		}
	})
}
