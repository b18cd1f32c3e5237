package oci

import (
	"bytes"
	"context"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

const helloYAML = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata:\n  name: hello\n"

// memoryRegistry is a registry that nobody here wrote.
func memoryRegistry(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func newStore(t *testing.T) *Store {
	t.Helper()
	s, err := OpenStore(filepath.Join(t.TempDir(), "store"), StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func buildHello(t *testing.T) *Image {
	t.Helper()
	img, err := BuildImage(t.Context(), ImageInput{PackageYAML: []byte(helloYAML), Examples: []byte("kind: Example\n")})
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// fetchYAML resolves, fetches and reads the package at a reference.
func fetchYAML(ctx context.Context, r *Remote, store *Store, ref Reference) ([]byte, Manifest, error) {
	d, err := r.Resolve(ctx, ref)
	if err != nil {
		return nil, Manifest{}, err
	}
	m, err := r.Fetch(ctx, ref.WithDigest(d.Digest), store, FetchOptions{})
	if err != nil {
		return nil, Manifest{}, err
	}
	data, err := PackageYAML(ctx, store, m, Limits{})
	return data, m, err
}

func TestRoundTripThroughRegistry(t *testing.T) {
	host := memoryRegistry(t)
	img := buildHello(t)
	client := NewRemote(RemoteOptions{})
	t.Cleanup(client.Close)
	ref := MustParseReference(host + "/acme/hello:v1.0.0")

	digest, err := client.Push(t.Context(), ref, img)
	if err != nil {
		t.Fatal(err)
	}
	if digest != img.Digest() {
		t.Errorf("push gave %s, build %s", digest, img.Digest())
	}
	got, m, err := fetchYAML(t.Context(), client, newStore(t), ref)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(helloYAML, string(got)); diff != "" {
		t.Error(diff)
	}
	if m.Digest != img.Digest() || m.Base == nil {
		t.Errorf("manifest %+v", m)
	}
	readByForeignClient(t, ref, digest)
}

// readByForeignClient reads the package with go-containerregistry alone.
func readByForeignClient(t *testing.T, ref Reference, digest Digest) {
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
	if got := manifest.Layers[0].Annotations[AnnotationKey]; got != AnnotationBase {
		t.Errorf("annotation %q", got)
	}
	files, err := io.ReadAll(mutate.Extract(img))
	if err != nil || !bytes.Contains(files, []byte(helloYAML)) {
		t.Errorf("flattened filesystem: %v", err)
	}
}

func TestRoundTripThroughArchive(t *testing.T) {
	img := buildHello(t)
	path := filepath.Join(t.TempDir(), "hello.xpkg")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteArchive(t.Context(), f, img, ArchiveOptions{}, Limits{}); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	a, err := OpenArchive(t.Context(), path, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if a.Digest() != img.Digest() {
		t.Errorf("archive has %s, build gave %s", a.Digest(), img.Digest())
	}
	m, err := FindManifest(t.Context(), a, Platform{}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadPackageYAML(t.Context(), a, m, Limits{})
	if err != nil || string(got) != helloYAML {
		t.Errorf("%q %v", got, err)
	}

	foreign, err := tarball.ImageFromPath(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(foreign); err != nil {
		t.Error(err)
	}

	client := NewRemote(RemoteOptions{})
	t.Cleanup(client.Close)
	ref := MustParseReference(memoryRegistry(t) + "/acme/hello:v1.0.0")
	if d, err := client.Push(t.Context(), ref, a); err != nil || d != img.Digest() {
		t.Errorf("push: %s %v", d, err)
	}
}
