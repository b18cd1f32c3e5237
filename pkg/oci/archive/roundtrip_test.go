package archive

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

func TestRoundTripThroughArchive(t *testing.T) {
	img := ocitest.Hello(t)
	path := filepath.Join(t.TempDir(), "hello.xpkg")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(t.Context(), f, img, WriteOptions{}, oci.Limits{}); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	a, err := Open(t.Context(), path, oci.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if a.Digest() != img.Digest() {
		t.Errorf("archive has %s, build gave %s", a.Digest(), img.Digest())
	}
	m, err := oci.FindManifest(t.Context(), a, oci.Platform{}, oci.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := oci.PackageYAML(t.Context(), a, m, oci.Limits{})
	if err != nil || string(got) != ocitest.HelloYAML {
		t.Errorf("%q %v", got, err)
	}

	foreign, err := tarball.ImageFromPath(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(foreign); err != nil {
		t.Error(err)
	}

	client := remote.New(remote.Options{})
	t.Cleanup(client.Close)
	ref := oci.MustParseReference(ocitest.MemoryRegistry(t) + "/acme/hello:v1.0.0")
	if d, err := client.Push(t.Context(), ref, a); err != nil || d != img.Digest() {
		t.Errorf("push: %s %v", d, err)
	}
}
