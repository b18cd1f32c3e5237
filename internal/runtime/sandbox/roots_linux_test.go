package sandbox

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	pkgruntime "github.com/xpkg-dev/xpkg/internal/runtime"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
	"github.com/xpkg-dev/xpkg/pkg/oci/unpack"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/testing/cluster"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// pushImage publishes an image, built and pushed with third-party tools.
func pushImage(
	t testing.TB, registry, tag string, config v1.Config, architecture string, files map[string][]byte,
) (fetch.Origin, oci.Digest) {
	t.Helper()
	var entries []entry
	for _, path := range sortedKeys(files) {
		entries = append(entries, entry{path, 0o755, files[path]})
	}
	return pushEntries(t, registry, tag, config, architecture, entries)
}

// entry is an entry of a layer: a folder if its name ends with a slash, and a file otherwise.
type entry struct {
	name string
	mode int64
	data []byte
}

// pushEntries publishes an image with one layer.
func pushEntries(
	t testing.TB, registry, tag string, config v1.Config, architecture string, entries []entry,
) (fetch.Origin, oci.Digest) {
	t.Helper()
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.data)), Typeflag: tar.TypeReg}
		if strings.HasSuffix(e.name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(e.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (
		io.ReadCloser, error,
	) {
		return io.NopCloser(bytes.NewReader(packed.Bytes())), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	img, err = mutate.ConfigFile(img, &v1.ConfigFile{
		OS: "linux", Architecture: architecture, Config: config, RootFS: must(img.ConfigFile()).RootFS,
	})
	if err != nil {
		t.Fatal(err)
	}
	target := registry + "/acme/provider:" + tag
	ref, err := name.ParseReference(target, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, img); err != nil {
		t.Fatal(err)
	}
	return fetch.Plain(oci.MustParseReference(target)), oci.MustParseDigest(must(img.Digest()).String())
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func newRoots(t testing.TB, dir string) *Roots {
	t.Helper()
	store, err := store.Open(filepath.Join(t.TempDir(), "store"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	source := fetch.NewSource(fetch.Options{Store: store})
	t.Cleanup(source.Close)
	r, err := NewRoots(RootsOptions{Dir: dir, Source: source})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestProgramOfARegistry(t *testing.T) {
	registry := cluster.Registry(t)
	origin, digest := pushImage(t, registry, "v1", v1.Config{
		Entrypoint: []string{"/bin/program"}, Cmd: []string{"serve"}, Env: []string{"A=b"}, WorkingDir: "/made",
	}, runtime.GOARCH, map[string][]byte{"bin/program": buildProgram(t)})
	dir := openTemp(t)
	roots := newRoots(t, filepath.Join(dir, "images"))
	s := newSupervisor(t, func(o *Options) { o.Images = roots })
	spec := spec(t, "provider-0123456789ab")
	spec.Origin, spec.Digest = origin, digest
	begin(t, s, spec)
	got := see(t, spec)
	if diff := cmp.Diff([]string{"/bin/program", "serve"}, got.Args); diff != "" {
		t.Error(diff)
	}
	if !slices.Contains(got.Env, "A=b") {
		t.Errorf("got %v", got.Env)
	}
	if g, err := s.launcher.detect(t.Context()); err == nil && g.kind == inNamespaces && got.Dir != "/made" {
		t.Errorf("it started in %s", got.Dir)
	}
	// A root in use is not removed.
	if err := roots.Prune(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := roots.open(digest); err != nil {
		t.Error(err)
	}
}

// Files and folders without permissions, of the image and of the runtime, are unpacked,
// copied and removed like all others.
//
// hardening: H18
func TestRuntimeWithFilesWithoutPermissions(t *testing.T) {
	origin, digest := pushEntries(t,
		cluster.Registry(t), "locked", v1.Config{Entrypoint: []string{"/bin/program"}}, runtime.GOARCH, []entry{
			{"none", 0, []byte("x")}, {"empty/", 0, nil}, {"locked/", 0, nil}, {"locked/inner/", 0, nil},
			{"locked/inner/none", 0, []byte("x")},
			{"locked/inner/later", 0, []byte("x")}, {"bin/", 0o755, nil}, {"bin/program", 0o755, buildProgram(t)},
		})
	forEachIsolation(t, func(t *testing.T, forced *Supervisor) {
		images := filepath.Join(openTemp(t), "images")
		roots := newRoots(t, images)
		s := newSupervisor(t, func(o *Options) { o.Images, o.Isolation = roots, forced.opts.Isolation })
		spec := spec(t, "locked")
		spec.Origin, spec.Digest = origin, digest
		begin(t, s, spec)
		temp := "/tmp"
		for _, variable := range see(t, spec).Env {
			if value, ok := strings.CutPrefix(variable, "TMPDIR="); ok {
				temp = value
			}
		}
		mustAsk(t, spec, "lock", filepath.Join(temp, "mine"))
		_, _ = ask(spec, "exit", "0")
		status(t, s, spec.Name, "it runs again", func(s Status) bool { return s.Running && s.Restarts == 1 })
		serving(t, spec)
		mustAsk(t, spec, "lock", filepath.Join(temp, "mine"))
		if err := errors.Join(s.Stop(t.Context(), spec.Name), roots.Prune(nil)); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{images, filepath.Join(s.opts.Dir, programsFolder)} {
			if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
				t.Errorf("left behind in %s: %v, %v", dir, left, err)
			}
		}
	})
}

func TestImagesThatCannotRun(t *testing.T) {
	registry := cluster.Registry(t)
	roots := newRoots(t, filepath.Join(t.TempDir(), "images"))
	s := newSupervisor(t, func(o *Options) { o.Images = roots })
	other := "arm64"
	if runtime.GOARCH == other {
		other = "amd64"
	}
	for name, test := range map[string]struct {
		config       v1.Config
		architecture string
		want         errcode.Code
	}{
		"platform":   {v1.Config{Entrypoint: []string{"/package.yaml"}}, other, unpack.ErrWrongPlatform},
		"no-program": {v1.Config{}, runtime.GOARCH, pkgruntime.ErrNoProgram},
		"not-there":  {v1.Config{Entrypoint: []string{"/bin/program"}}, runtime.GOARCH, pkgruntime.ErrNoProgram},
	} {
		origin, digest := pushImage(t, registry, name, test.config, test.architecture, map[string][]byte{
			"package.yaml": []byte(name),
		})
		if err := s.Ensure(t.Context(), Spec{Name: name, Origin: origin, Digest: digest}); !errors.Is(err, test.want) {
			t.Errorf("%s: got %v", name, err)
		}
		if _, ok := s.Status(name); ok {
			t.Errorf("%s runs", name)
		}
	}
}

func TestRootsAreSharedAndPruned(t *testing.T) {
	registry := cluster.Registry(t)
	dir := filepath.Join(t.TempDir(), "images")
	first, second := newRoots(t, dir), newRoots(t, dir)
	origin, digest := pushImage(t, registry, "v1", v1.Config{Cmd: []string{"x"}}, runtime.GOARCH, map[string][]byte{
		"a": []byte("1"),
	})
	otherOrigin, other := pushImage(t, registry, "v2", v1.Config{Cmd: []string{"y"}}, runtime.GOARCH, map[string][]byte{
		"a": []byte("2"),
	})
	var mu sync.Mutex
	var got []Root
	var group sync.WaitGroup
	for i := range 12 {
		group.Go(func() {
			roots := []*Roots{first, second}[i%2]
			root, err := roots.Image(t.Context(), origin, digest)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
				return
			}
			got = append(got, root)
		})
	}
	group.Wait()
	names := func() []string {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	if diff := cmp.Diff([]string{digest.Hex()}, names()); diff != "" {
		t.Fatal(diff)
	}
	unused, err := first.Image(t.Context(), otherOrigin, other)
	if err != nil {
		t.Fatal(err)
	}
	unused.release()
	// Another process may use a root that this one does not.
	for _, root := range got[1:] {
		root.release()
	}
	if err := second.Prune(nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{digest.Hex()}, names()); diff != "" {
		t.Error(diff)
	}
	got[0].release()
	if err := second.Prune([]oci.Digest{digest}); err != nil || len(names()) != 1 {
		t.Errorf("%v, %v", names(), err)
	}
	if err := second.Prune(nil); err != nil || len(names()) != 0 {
		t.Errorf("%v, %v", names(), err)
	}
	again, err := first.Image(t.Context(), origin, digest)
	if err != nil {
		t.Fatal(err)
	}
	again.release()
}

// Files left behind by a killed process are removed, and never used.
func TestRootsOfAKilledProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "images")
	making := filepath.Join(dir, unpackPrefix+"123")
	if err := os.MkdirAll(filepath.Join(making, rootFolder, "closed"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(
		os.WriteFile(filepath.Join(making, lockFile), nil, 0o600), os.Chmod(filepath.Join(making, rootFolder, "closed"), 0),
	); err != nil {
		t.Fatal(err)
	}
	newRoots(t, dir)
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A layer that was damaged in the store is fetched again.
func TestDamagedLayer(t *testing.T) {
	registry := cluster.Registry(t)
	roots := newRoots(t, filepath.Join(t.TempDir(), "images"))
	origin, digest := pushImage(t, registry, "v1", v1.Config{Cmd: []string{"x"}}, runtime.GOARCH, map[string][]byte{
		"a": bytes.Repeat([]byte("abc"), 1000),
	})
	image, err := roots.opts.Source.FetchRuntimeImage(t.Context(), origin, digest, roots.opts.Platform, roots.opts.Limits)
	if err != nil {
		t.Fatal(err)
	}
	hex := image.Layers[0].Digest.Hex()
	blob := filepath.Join(roots.opts.Source.Store().Dir(), "blobs", hex[:2], hex)
	if err := os.WriteFile(blob, []byte(strings.Repeat("x", int(image.Layers[0].Size))), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := roots.Image(t.Context(), origin, digest)
	if err != nil {
		t.Fatal(err)
	}
	defer root.release()
	if data, err := os.ReadFile(filepath.Join(root.Path, "a")); err != nil || len(data) != 3000 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}
