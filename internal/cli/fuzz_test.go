package cli

import (
	"bytes"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/oci"
)

// Whatever a user writes is one place, and its text leads back to it.
func FuzzParsePlace(f *testing.F) {
	for _, s := range []string{"-", "oci:dir", "oci:", "a.xpkg", "./a:b", "ghcr.io/a/b:v1", "a/b@sha256:0", "C:\\a", "", "@", ":"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := parsePlace(s)
		if err != nil {
			return
		}
		again, err := parsePlace(p.String())
		if err != nil || again != p {
			t.Fatalf("%q is %+v, whose text is that of %+v (%v)", s, p, again, err)
		}
	})
}

// A layer is a hostile input like any other.
func FuzzUntarIndex(f *testing.F) {
	layer, err := indexLayer([]byte("apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: x}\n"), format.Limits{})
	if err != nil {
		f.Fatal(err)
	}
	image, err := oci.BuildExtensions([]oci.ExtraLayer{layer})
	if err != nil {
		f.Fatal(err)
	}
	_, document, err := oci.ReadDocument(f.Context(), image, image.Root(), oci.Limits{})
	if err != nil {
		f.Fatal(err)
	}
	blob, err := image.Open(f.Context(), document.Layers[0])
	if err != nil {
		f.Fatal(err)
	}
	var packed bytes.Buffer
	if _, err := packed.ReadFrom(blob); err != nil {
		f.Fatal(err)
	}
	f.Add(packed.Bytes())
	f.Add(packed.Bytes()[:packed.Len()/2])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		text, err := untarIndex(data)
		if err == nil && len(text) > maxIndexLayer {
			t.Fatalf("%d bytes came out of %d", len(text), len(data))
		}
		if err == nil {
			_, _ = format.DecodeIndex(text)
		}
	})
}
