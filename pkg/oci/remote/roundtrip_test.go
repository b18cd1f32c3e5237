package remote

import (
	"bytes"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest/storetest"
)

func TestRoundTripThroughRegistry(t *testing.T) {
	host := ocitest.MemoryRegistry(t)
	img := ocitest.Hello(t)
	client := New(Options{})
	t.Cleanup(client.Close)
	ref := oci.MustParseReference(host + "/acme/hello:v1.0.0")

	digest, err := client.Push(t.Context(), ref, img)
	if err != nil {
		t.Fatal(err)
	}
	if digest != img.Digest() {
		t.Errorf("push gave %s, build %s", digest, img.Digest())
	}
	got, m, err := fetchYAML(t.Context(), client, storetest.New(t), ref)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(ocitest.HelloYAML, string(got)); diff != "" {
		t.Error(diff)
	}
	if m.Digest != img.Digest() || m.Base == nil {
		t.Errorf("manifest %+v", m)
	}
	readByForeignClient(t, ref, digest)
}

// readByForeignClient reads the package with go-containerregistry alone.
func readByForeignClient(t *testing.T, ref oci.Reference, digest oci.Digest) {
	t.Helper()
	foreign, err := name.ParseReference(ref.String())
	if err != nil {
		t.Fatal(err)
	}
	img, err := remote.Image(foreign)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(img); err != nil {
		t.Error(err)
	}
	if h, err := img.Digest(); err != nil || h.String() != digest.String() {
		t.Errorf("digest %s %v", h, err)
	}
	manifest, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if got := manifest.Layers[0].Annotations[oci.AnnotationKey]; got != oci.AnnotationBase {
		t.Errorf("annotation %q", got)
	}
	files, err := io.ReadAll(mutate.Extract(img))
	if err != nil || !bytes.Contains(files, []byte(ocitest.HelloYAML)) {
		t.Errorf("flattened filesystem: %v", err)
	}
}
