package main

import (
	"archive/tar"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

const version = "v1.2.3"

func digestOf(t *testing.T, i interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	d, err := i.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d.String()
}

// Builds of the same sources, in any directory, produce the same image for both
// architectures.
func TestTheSameDigestTwice(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program: skipped with -short")
	}
	root := filepath.Join("..", "..")
	architectures := []string{"amd64", "arm64"}
	first, err := build(t.Context(), root, version, architectures)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	copySources(t, root, elsewhere)
	second, err := build(t.Context(), elsewhere, version, architectures)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := digestOf(t, first), digestOf(t, second); a != b {
		t.Errorf("built in two folders: %s and %s", a, b)
	}
	for i, arch := range architectures {
		isFor(t, first, i, arch)
	}
	dir := filepath.Join(t.TempDir(), "layout")
	for range 2 {
		if err := write(dir, first, version); err != nil {
			t.Fatal(err)
		}
	}
	written, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	m, err := written.IndexManifest()
	if err != nil || len(m.Manifests) != 1 || m.Manifests[0].Digest.String() != digestOf(t, first) {
		t.Errorf("the layout holds %+v, %v", m, err)
	}
	if err := validate.Index(written); err != nil {
		t.Error(err)
	}
	runs(t, first)
}

// isFor checks that a manifest of an index and its image have the architecture, and that
// the image runs as an unprivileged user.
func isFor(t *testing.T, index v1.ImageIndex, at int, arch string) {
	t.Helper()
	m, err := index.IndexManifest()
	if err != nil || len(m.Manifests) <= at {
		t.Fatalf("manifests %+v, %v; want one for %s", m, err, arch)
	}
	d := m.Manifests[at]
	image, err := index.Image(d.Digest)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if d.Platform.String() != "linux/"+arch || config.Platform().String() != "linux/"+arch || config.Config.User != user {
		t.Errorf("the image for %s is for %s, runs on %s as %q", arch, d.Platform, config.Platform(), config.Config.User)
	}
}

// The layout names its image by the version.
func TestLayoutNamesItsImage(t *testing.T) {
	image, err := assemble([]byte("the program"), version, "amd64")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "layout")
	if err := write(dir, mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: image}), version); err != nil {
		t.Fatal(err)
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if got := manifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"]; got != version {
		t.Errorf("the image is named %q, want %q", got, version)
	}
}

// The pushed image equals the layout.
func TestPush(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	image, err := assemble([]byte("the program"), version, "amd64")
	if err != nil {
		t.Fatal(err)
	}
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: image})
	ref := strings.TrimPrefix(server.URL, "http://") + "/xpkg/xpkg:" + version
	if err := pushTo(t.Context(), ref, index); err != nil {
		t.Fatal(err)
	}
	parsed, err := name.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	pushed, err := remote.Index(parsed)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := digestOf(t, index), digestOf(t, pushed); a != b {
		t.Errorf("pushed %s, and the registry has %s", a, b)
	}
	if err := pushTo(t.Context(), "not a reference", index); err == nil {
		t.Error("pushed to something that is no reference")
	}
}

// runs unpacks the binary for this machine, and runs it with an empty environment.
func runs(t *testing.T, index v1.ImageIndex) {
	t.Helper()
	m, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(m.Manifests, func(d v1.Descriptor) bool { return d.Platform.Architecture == runtime.GOARCH })
	if i < 0 || runtime.GOOS != "linux" {
		t.Skipf("there is no image for %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	image, err := index.Image(m.Manifests[i].Digest)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "xpkg")
	if err := os.WriteFile(path, contents(t, image)[entrypoint[1:]].data, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, "version")
	cmd.Env = []string{}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), version) {
		t.Errorf("xpkg version: %v\n%s", err, out)
	}
}

// copySources copies the files of the sources that git tracks, including uncommitted
// changes.
func copySources(t *testing.T, from, to string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "--", "*.go", "go.mod", "go.sum", "apis", "internal", "pkg")
	cmd.Dir = from
	list, err := cmd.Output()
	if err != nil {
		t.Skipf("git does not know the sources: %v", err)
	}
	for _, name := range strings.Fields(string(list)) {
		if strings.HasPrefix(name, "controlplane/") || strings.HasSuffix(name, "_test.go") ||
			strings.Contains(name, "testdata/") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(from, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		path := filepath.Join(to, name)
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

type entry struct {
	mode int64
	data []byte
}

// contents returns the files of an image.
func contents(t *testing.T, image v1.Image) map[string]entry {
	t.Helper()
	r := mutate.Extract(image)
	defer r.Close()
	out := map[string]entry{}
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || !h.ModTime.Equal(h.ModTime.Truncate(1)) || h.ModTime.Unix() != 0 {
			t.Errorf("%s belongs to %d:%d and is of %s", h.Name, h.Uid, h.Gid, h.ModTime)
		}
		data, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		out[h.Name] = entry{h.Mode, data}
	}
}

// The image contains the binary and its prerequisites, belongs to root, and runs as an
// unprivileged user.
func TestContentOfTheImage(t *testing.T) {
	program := []byte("the program")
	image, err := assemble(program, version, "arm64")
	if err != nil {
		t.Fatal(err)
	}
	files := contents(t, image)
	if got := files[entrypoint[1:]]; string(got.data) != string(program) || got.mode != 0o755 {
		t.Errorf("program: %d bytes, mode %o", len(got.data), got.mode)
	}
	if got := files["tmp"]; got.mode != 0o1777 {
		t.Errorf("/tmp has the mode %o", got.mode)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(files["etc/ssl/certs/ca-certificates.crt"].data) {
		t.Error("there are no certificates of authorities")
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != user || !slices.Equal(config.Config.Entrypoint, []string{entrypoint}) ||
		config.Architecture != "arm64" || config.OS != "linux" {
		t.Errorf("configuration %+v", config)
	}
	again, err := assemble(program, version, "arm64")
	if err != nil || digestOf(t, image) != digestOf(t, again) {
		t.Errorf("assembled twice: %s and %s, %v", digestOf(t, image), digestOf(t, again), err)
	}
}

func TestFailedBuildReportsTheReason(t *testing.T) {
	_, err := compile(context.Background(), t.TempDir(), version, "amd64")
	if err == nil || !strings.Contains(err.Error(), "go.mod") {
		t.Errorf("got %v, want the error of the compiler", err)
	}
}
