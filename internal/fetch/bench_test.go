package fetch_test

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// bigProvider returns the stream of the provider with the most definitions.
func bigProvider(b *testing.B) []byte {
	b.Helper()
	if testing.Short() {
		b.Skip("reads 98 MB of YAML: skipped with -short")
	}
	folder := os.DirFS(filepath.Join(
		corpus.Dir(b), "providers", "crossplane-contrib__provider-upjet-aws@v2.6.0", "package", "crds",
	))
	var stream bytes.Buffer
	stream.WriteString("apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: big\n")
	entries, err := fs.ReadDir(folder, ".")
	if err != nil {
		b.Fatal(err)
	}
	for _, e := range entries {
		f, err := folder.Open(e.Name())
		if err != nil {
			b.Fatal(err)
		}
		stream.WriteString("---\n")
		if _, err := io.Copy(&stream, f); err != nil {
			b.Fatal(err)
		}
		if err := f.Close(); err != nil {
			b.Fatal(err)
		}
	}
	return stream.Bytes()
}

// BenchmarkBigProvider reads the largest known provider from the store: for the
// first time, again, and again with all of its objects. The floor is verifying the
// bytes that the first read starts from.
func BenchmarkBigProvider(b *testing.B) {
	image, err := image.Build(b.Context(), image.Input{PackageYAML: bigProvider(b)})
	if err != nil {
		b.Fatal(err)
	}
	dir := filepath.Join(b.TempDir(), "store")
	store, err := store.Open(dir, store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	if err := store.Add(b.Context(), image, oci.Limits{}); err != nil {
		b.Fatal(err)
	}
	digest := image.Digest()
	image = nil
	debug.FreeOSMemory()
	resetPeak(b)
	source := fetch.NewSource(fetch.Options{Store: store})
	defer source.Close()
	read := func(b *testing.B) *xpkg.Package {
		pkg, err := source.Read(b.Context(), fetch.Origin{}, digest, false)
		if err != nil {
			b.Fatal(err)
		}
		return pkg
	}
	b.Run("Floor", func(b *testing.B) {
		for b.Loop() {
			if err := filepath.WalkDir(filepath.Join(dir, "blobs"), func(path string, e os.DirEntry, err error) error {
				if err != nil || e.IsDir() {
					return err
				}
				raw, err := os.ReadFile(path)
				oci.DigestOf(raw)
				return err
			}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("First", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			if err := os.RemoveAll(filepath.Join(dir, "derived")); err != nil {
				b.Fatal(err)
			}
			if err := os.Mkdir(filepath.Join(dir, "derived"), 0o700); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			read(b)
		}
		b.ReportMetric(resident("VmHWM"), "peak-MiB")
		b.ReportMetric(resident("VmRSS"), "after-MiB")
	})
	b.Run("Again", func(b *testing.B) {
		for b.Loop() {
			read(b)
		}
		b.ReportMetric(resident("VmRSS"), "after-MiB")
	})
	b.Run("AgainWithObjects", func(b *testing.B) {
		for b.Loop() {
			for _, o := range read(b).Objects {
				if _, err := o.JSON(); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.ReportMetric(resident("VmRSS"), "after-MiB")
	})
}

// resetPeak forgets the greatest memory until now, where the system can do that.
func resetPeak(b *testing.B) {
	b.Helper()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o200); err != nil {
		b.Logf("the peak is that of building the image as well: %v", err)
	}
}

// resident returns a memory figure of this process in MiB, if the system provides
// it.
func resident(figure string) float64 {
	status, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(status), figure+":")
	if fields := strings.Fields(rest); len(fields) > 0 {
		if kib, err := strconv.ParseFloat(fields[0], 64); err == nil {
			return kib / 1024
		}
	}
	return 0
}
