package oci

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
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

// Every package of the corpus goes to a registry and comes back byte for byte.
func TestCorpusRoundTrip(t *testing.T) {
	root := corpus.Dir(t)
	dirs, err := filepath.Glob(filepath.Join(root, "*", "*", "package"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no packages in %s: %v", root, err)
	}
	host := memoryRegistry(t)
	r := testRemote(t, nil)
	for i, dir := range dirs {
		if testing.Short() && i%10 != 0 {
			continue
		}
		want := stream(t, dir)
		img, err := BuildImage(t.Context(), ImageInput{PackageYAML: want})
		must(t, err)
		ref := MustParseReference(fmt.Sprintf("%s/corpus/p%d:v1", host, i))
		_, err = r.Push(t.Context(), ref, img)
		must(t, err)
		got, _, err := fetchYAML(t.Context(), r, newStore(t), ref)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes of %d, %v", strings.TrimPrefix(dir, root), len(got), len(want), err)
		}
	}
}

// largest is the biggest provider of the corpus.
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
		if _, err := BuildImage(b.Context(), ImageInput{PackageYAML: data}); err != nil {
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
		got, err := PackageYAML(b.Context(), store, m, Limits{})
		if err != nil || len(got) != len(data) {
			b.Fatalf("%d bytes, %v", len(got), err)
		}
	}
}

// BenchmarkFetch pulls from a registry on this machine into an empty store.
func BenchmarkFetch(b *testing.B) {
	data := largest(b)
	img, err := BuildImage(b.Context(), ImageInput{PackageYAML: data})
	if err != nil {
		b.Fatal(err)
	}
	f := newFakeRegistry(b)
	r := NewRemote(RemoteOptions{})
	defer r.Close()
	ref := f.publish(b, img, "v1").WithDigest(img.Digest())
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		store, err := OpenStore(filepath.Join(b.TempDir(), "store"), StoreOptions{})
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
	store, m := stored(b, []byte(helloYAML))
	key := DerivedKey{Digest: m.Digest, Name: "index", Version: 1}
	if err := store.PutDerived(b.Context(), key, noise(200<<10)); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := store.GetDerived(b.Context(), key); err != nil {
			b.Fatal(err)
		}
	}
}

func stored(b *testing.B, data []byte) (*Store, Manifest) {
	b.Helper()
	img, err := BuildImage(b.Context(), ImageInput{PackageYAML: data})
	if err != nil {
		b.Fatal(err)
	}
	store, err := OpenStore(filepath.Join(b.TempDir(), "store"), StoreOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	if err := store.Add(context.Background(), img, Limits{}); err != nil {
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
		fmt.Fprintf(&yaml, "%s---\nline: %d\n", helloYAML, n*n)
	}
	data := yaml.Bytes()
	img, err := BuildImage(t.Context(), ImageInput{PackageYAML: data, Extra: []ExtraLayer{{Annotation: "x", Files: []LayerFile{{Path: "noise", Data: noise(1 << 20)}}}}})
	must(t, err)
	store := newStore(t)
	must(t, store.Add(t.Context(), img, Limits{}))
	m, err := img.Manifest()
	must(t, err)
	before := allocated()
	got, err := PackageYAML(t.Context(), store, m, Limits{})
	must(t, err)
	if used := allocated() - before; used > uint64(len(got))+4<<20 {
		t.Errorf("reading %d bytes allocated %d", len(got), used)
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
