package cli_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
)

// TestTransportsThatLoseAnnotations proves that xpkg reads a package that was pushed as a Docker
// archive, as `crane push FILE`, `docker load` and skopeo's docker-archive: do: the manifest of
// the copy has no annotations. A copy of the manifest keeps the digest.
func TestTransportsThatLoseAnnotations(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir, registry := t.TempDir(), cluster.Registry(t)
	file, runtime := filepath.Join(dir, "hello.xpkg"), filepath.Join(dir, "runtime.tar")
	writeRuntime(t, runtime, "a program\n")
	runXpkg(
		t, "build", "-f", filepath.Join("..", "..", "examples", "provider-hello", "package"), "--embed-runtime-image-tarball",
		runtime, "-o", file,
	)
	want := runXpkg(t, "extract", file)

	pushed := registry + "/transports/pushed:v1"
	archive, err := crane.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := crane.Push(archive, pushed); err != nil {
		t.Fatal(err)
	}
	m, err := archive.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range m.Layers {
		if len(l.Annotations) > 0 {
			t.Fatalf("the archive has annotations: %v", l.Annotations)
		}
	}
	if got := runXpkg(t, "extract", pushed); got != want {
		t.Errorf("a package without annotations has %d bytes, want %d", len(got), len(want))
	}

	first, copied := registry+"/transports/first:v1", registry+"/transports/copied:v1"
	runXpkg(t, "push", "-f", file, first)
	if err := crane.Copy(first, copied); err != nil {
		t.Fatal(err)
	}
	a, err := crane.Digest(first)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := crane.Digest(copied); err != nil || a != b {
		t.Errorf("the copy is %s (%v), want %s", b, err, a)
	}
}

// writeRuntime writes a runtime image with a program as docker save does.
func writeRuntime(t *testing.T, file, program string) {
	t.Helper()
	img, err := crane.Image(map[string][]byte{"program": []byte(program)})
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config.OS, config.Architecture, config.Config = "linux", "amd64", v1.Config{Entrypoint: []string{"/program"}}
	if img, err = mutate.ConfigFile(img, config); err != nil {
		t.Fatal(err)
	}
	if err := tarball.WriteToFile(file, name.MustParseReference("runtime"), img); err != nil {
		t.Fatal(err)
	}
}
