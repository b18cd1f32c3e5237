package image_test

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"pgregory.net/rapid"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"
)

// Layers in random order, with replacements and removals, read as a foreign
// library flattens them.
//
// hardening: B12
func TestFlattenAgreesWithForeignReader(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var layers []oci.Descriptor
		var blobs [][]byte
		foreign := empty.Image
		for n := range rapid.IntRange(1, 5).Draw(r, "layers") {
			var files []image.File
			switch rapid.SampledFrom([]string{"none", "file", "whiteout", "elsewhere"}).Draw(r, "kind") {
			case "file":
				files = []image.File{{
					Path: rapid.SampledFrom([]string{"package.yaml", "./package.yaml"}).Draw(r, "name"),
					Data: fmt.Appendf(nil, "layer %d", n),
				}}
			case "whiteout":
				files = []image.File{{Path: ".wh.package.yaml"}}
			case "elsewhere":
				files = []image.File{{Path: "a/package.yaml", Data: []byte("no")}, {Path: "a/.wh.package.yaml"}}
			}
			data := ocitest.Tar(t, files...)
			d := oci.Descriptor{MediaType: oci.MediaTypeOCILayer, Digest: oci.DigestOf(data), Size: int64(len(data))}
			layers, blobs = append(layers, d), append(blobs, data)
			next, err := mutate.AppendLayers(foreign, static.NewLayer(data, oci.MediaTypeOCILayer))
			if err != nil {
				r.Fatal(err)
			}
			foreign = next
		}
		img := ocitest.Assemble(t, []byte(`{"architecture":"amd64","os":"linux"}`), layers, blobs...)
		m, err := oci.FindManifest(t.Context(), img, oci.Platform{}, oci.Limits{})
		if err != nil {
			r.Fatal(err)
		}
		got, err := oci.PackageYAML(t.Context(), img, m, oci.Limits{})
		want, found := extract(r, mutate.Extract(foreign))
		if found != (err == nil) || (found && string(got) != want) {
			r.Fatalf("got %q %v, the foreign reader %q %t", got, err, want, found)
		}
		if err != nil && !errors.Is(err, oci.ErrNoPackageYAML) {
			r.Fatal(err)
		}
	})
}

func extract(t *rapid.T, r io.ReadCloser) (string, bool) {
	defer r.Close()
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return "", false
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Name == oci.PackageFile {
			data, err := io.ReadAll(tr)
			if err != nil {
				t.Fatal(err)
			}
			return string(data), true
		}
	}
}
