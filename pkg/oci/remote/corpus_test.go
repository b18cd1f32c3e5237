package remote

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/ocitest/storetest"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// stream joins the YAML of a package of the corpus, as a build would.
func stream(t testing.TB, dir string) []byte {
	t.Helper()
	var out bytes.Buffer
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(&out, "---\n%s\n", bytes.TrimSpace(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Every package of the corpus survives a push and a fetch byte for byte.
func TestCorpusRoundTrip(t *testing.T) {
	root := corpus.Dir(t)
	dirs, err := filepath.Glob(filepath.Join(root, "*", "*", "package"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no packages in %s: %v", root, err)
	}
	host := ocitest.MemoryRegistry(t)
	r := testRemote(t, nil)
	for i, dir := range dirs {
		if testing.Short() && i%10 != 0 {
			continue
		}
		want := stream(t, dir)
		img, err := image.Build(t.Context(), image.Input{PackageYAML: want})
		ocitest.Must(t, err)
		ref := oci.MustParseReference(fmt.Sprintf("%s/corpus/p%d:v1", host, i))
		_, err = r.Push(t.Context(), ref, img)
		ocitest.Must(t, err)
		got, _, err := fetchYAML(t.Context(), r, storetest.New(t), ref)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes of %d, %v", strings.TrimPrefix(dir, root), len(got), len(want), err)
		}
	}
}

// largest returns the biggest provider of the corpus.
func largest(b *testing.B) []byte {
	b.Helper()
	dirs, err := filepath.Glob(filepath.Join(corpus.Dir(b), "providers", "*provider-upjet-aws@v2.6.0", "package"))
	if err != nil || len(dirs) == 0 {
		b.Skip("the corpus does not have the largest provider")
	}
	return stream(b, dirs[0])
}

func BenchmarkBuildImage(b *testing.B) {
	data := largest(b)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := image.Build(b.Context(), image.Input{PackageYAML: data}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPackageYAML reads from the store, verification included.
func BenchmarkPackageYAML(b *testing.B) {
	data := largest(b)
	store, m := stored(b, data)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		got, err := store.PackageYAML(b.Context(), m, oci.Limits{})
		if err != nil || len(got) != len(data) {
			b.Fatalf("%d bytes, %v", len(got), err)
		}
	}
}

// BenchmarkFetch pulls from a registry on this machine into an empty store.
func BenchmarkFetch(b *testing.B) {
	data := largest(b)
	img, err := image.Build(b.Context(), image.Input{PackageYAML: data})
	if err != nil {
		b.Fatal(err)
	}
	f := ocitest.NewRegistry(b)
	r := New(Options{})
	defer r.Close()
	ref := f.Publish(b, img, "v1").WithDigest(img.Digest())
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		store, err := store.Open(filepath.Join(b.TempDir(), "store"), store.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := r.Fetch(b.Context(), ref, store, FetchOptions{}); err != nil {
			b.Fatal(err)
		}
		if err := store.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDerived reads an index of the size that a provider of 1,000 CRDs has.
func BenchmarkDerived(b *testing.B) {
	contents, m := stored(b, []byte(ocitest.HelloYAML))
	key := store.DerivedKey{Digest: m.Digest, Name: "index", Version: 1}
	if err := contents.PutDerived(b.Context(), key, ocitest.Noise(200<<10)); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := contents.GetDerived(b.Context(), key); err != nil {
			b.Fatal(err)
		}
	}
}

func stored(b *testing.B, data []byte) (*store.Store, oci.Manifest) {
	b.Helper()
	img, err := image.Build(b.Context(), image.Input{PackageYAML: data})
	if err != nil {
		b.Fatal(err)
	}
	store, err := store.Open(filepath.Join(b.TempDir(), "store"), store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	if err := store.Add(context.Background(), img, oci.Limits{}); err != nil {
		b.Fatal(err)
	}
	m, err := img.Manifest()
	if err != nil {
		b.Fatal(err)
	}
	return store, m
}

// The memory of reading is the file, and a little more.
func TestMemoryIsBounded(t *testing.T) {
	var yaml bytes.Buffer
	for n := range 200_000 {
		fmt.Fprintf(&yaml, "%s---\nline: %d\n", ocitest.HelloYAML, n*n)
	}
	data := yaml.Bytes()
	img, err := image.Build(t.Context(), image.Input{PackageYAML: data, Extra: []image.ExtraLayer{{
		Annotation: "x", Files: []image.File{{Path: "noise", Data: ocitest.Noise(1 << 20)}},
	}}})
	ocitest.Must(t, err)
	store := storetest.New(t)
	ocitest.Must(t, store.Add(t.Context(), img, oci.Limits{}))
	m, err := img.Manifest()
	ocitest.Must(t, err)
	before := ocitest.Allocated()
	got, err := store.PackageYAML(t.Context(), m, oci.Limits{})
	ocitest.Must(t, err)
	if used := ocitest.Allocated() - before; used > uint64(len(got))+4<<20 {
		t.Errorf("reading %d bytes allocated %d", len(got), used)
	}
}
