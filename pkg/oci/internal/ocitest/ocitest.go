// Package ocitest contains helpers for the tests of pkg/oci: a fake registry, small
// packages and assertions.
package ocitest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"log"
	"math/rand/v2"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/assembly"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/tarfile"
)

// Quiet discards the log of test servers about disconnected clients.
var Quiet = log.New(io.Discard, "", 0)

// Noise returns n incompressible bytes, which are the same in every run.
func Noise(n int) []byte {
	r := rand.NewChaCha8([32]byte{1})
	data := make([]byte, n)
	_, _ = r.Read(data)
	return data
}

// HelloYAML is the package.yaml of a small Configuration.
const HelloYAML = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata:\n  name: hello\n"

// MemoryRegistry starts the in-memory registry of go-containerregistry and returns its
// host.
func MemoryRegistry(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// Hello returns the image of a small Configuration.
func Hello(t *testing.T) *image.Image {
	t.Helper()
	img, err := image.Build(t.Context(), image.Input{PackageYAML: []byte(HelloYAML), Examples: []byte("kind: Example\n")})
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// Must fails the test if there is an error.
func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// WantCode fails the test unless err has the code.
func WantCode(t *testing.T, err error, code errcode.Code) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %v", code)
	}
	if !errors.Is(err, code) {
		t.Fatalf("got %v, want code %v", err, code)
	}
}

// EmptyDigest is the digest of empty content.
const EmptyDigest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// TwoPlatforms returns an index of a package for two platforms with extensions.
func TwoPlatforms(t *testing.T) *image.Index {
	t.Helper()
	var images []*image.Image
	for _, arch := range []string{"amd64", "arm64"} {
		img, err := image.Build(t.Context(), image.Input{
			PackageYAML: []byte(HelloYAML + "# " + arch + "\n"), Platform: oci.Platform{OS: "linux", Architecture: arch},
		})
		Must(t, err)
		images = append(images, img)
	}
	index, err := image.NewIndex(images...)
	Must(t, err)
	extensions, err := image.BuildExtensions([]image.ExtraLayer{{Annotation: "docs", Files: []image.File{{
		Path: "readme.md", Data: []byte("# docs"),
	}}}})
	Must(t, err)
	index, err = image.AppendExtensions(t.Context(), index, extensions, oci.Limits{})
	Must(t, err)
	return index
}

// Tar returns a tar of files, in the order given.
func Tar(t testing.TB, files ...image.File) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		err := w.WriteHeader(tarfile.Header(f.Path, int64(len(f.Data))))
		if err == nil {
			_, err = w.Write(f.Data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// GzipLayer returns the descriptor and the bytes of a gzip layer of files.
func GzipLayer(t testing.TB, files ...image.File) (oci.Descriptor, []byte) {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(Tar(t, files...))
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return oci.Descriptor{MediaType: oci.MediaTypeOCILayerGzip, Digest: oci.DigestOf(out.Bytes()), Size: int64(out.Len())},
		out.Bytes()
}

// Assemble returns an artifact with a manifest of OCI media types. It does not check the
// manifest or the blobs.
func Assemble(t testing.TB, config []byte, layers []oci.Descriptor, blobs ...[]byte) *assembly.Assembly {
	t.Helper()
	raw, err := json.Marshal(oci.Document{
		SchemaVersion: 2, MediaType: oci.MediaTypeOCIManifest,
		Config: &oci.Descriptor{MediaType: oci.MediaTypeOCIConfig, Digest: oci.DigestOf(config), Size: int64(len(config))},
		Layers: layers,
	})
	if err != nil {
		t.Fatal(err)
	}
	a := &assembly.Assembly{Desc: oci.Descriptor{
		MediaType: oci.MediaTypeOCIManifest, Digest: oci.DigestOf(raw), Size: int64(len(raw)),
	}}
	for _, data := range append(blobs, config, raw) {
		a.Add(oci.DigestOf(data), assembly.BytesSource(data))
	}
	return a
}

// Allocated returns the number of bytes that the test binary has allocated so far.
func Allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// Layers returns the layers of an image.
func Layers(t *testing.T, img *image.Image) []oci.Descriptor {
	t.Helper()
	m, err := img.Manifest()
	Must(t, err)
	return m.Layers
}
