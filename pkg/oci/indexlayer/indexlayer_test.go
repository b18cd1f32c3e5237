package indexlayer

import (
	"bytes"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/index"
)

// A layer is a hostile input like any other.
func FuzzUntar(f *testing.F) {
	layer, err := Build(
		[]byte("apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: x}\n"), xpkg.Limits{},
	)
	if err != nil {
		f.Fatal(err)
	}
	image, err := image.BuildExtensions([]image.ExtraLayer{layer})
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
		text, err := untar(data)
		if err == nil && len(text) > maxSize {
			t.Fatalf("%d bytes came out of %d", len(text), len(data))
		}
		if err == nil {
			_, _ = index.Decode(text)
		}
	})
}
