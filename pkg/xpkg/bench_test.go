package xpkg_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/crdvalidation"
	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/index"
)

const benchMeta = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: provider-aws}\n"

// largest returns the folder of the largest provider of the corpus, whose metadata is
// made from a template and stands in for here.
func largest(tb testing.TB) (*xpkg.Folder, []byte) {
	tb.Helper()
	dir := filepath.Join(corpus.Dir(tb), "providers", "crossplane-contrib__provider-upjet-aws@v2.6.0", "package", "crds")
	folder, err := xpkg.ReadFolder(os.DirFS(dir), xpkg.FolderOptions{})
	if err != nil {
		tb.Skipf("the largest provider of the corpus cannot be read: %v", err)
	}
	return folder, append([]byte(benchMeta+"---\n"), folder.Stream()...)
}

// thousand returns a stream of its first thousand definitions.
func thousand(tb testing.TB) []byte {
	tb.Helper()
	folder, _ := largest(tb)
	folder.Documents = folder.Documents[:1000]
	return append([]byte(benchMeta+"---\n"), folder.Stream()...)
}

// BenchmarkReadCold reads the largest provider from its YAML.
func BenchmarkReadCold(b *testing.B) {
	_, stream := largest(b)
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := xpkg.Read(stream, xpkg.ReadOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReadWarm reads a package of a thousand definitions from its index.
func BenchmarkReadWarm(b *testing.B) {
	pkg, err := xpkg.Read(thousand(b), xpkg.ReadOptions{})
	if err != nil {
		b.Fatal(err)
	}
	x, err := index.New(pkg)
	if err != nil {
		b.Fatal(err)
	}
	texts, err := index.Blob(pkg)
	if err != nil {
		b.Fatal(err)
	}
	text := index.Encode(x)
	b.ReportMetric(float64(len(text)), "index-bytes")
	b.ReportAllocs()
	for b.Loop() {
		x, err := index.Decode(text)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := x.Package(bytes.NewReader(bytes.Join(texts, nil)), xpkg.Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBuild reads the folder of the largest provider, makes every check there
// is, and makes the stream.
func BenchmarkBuild(b *testing.B) {
	dir := filepath.Join(corpus.Dir(b), "providers", "crossplane-contrib__provider-upjet-aws@v2.6.0", "package", "crds")
	policy := xpkg.PolicyBuild().With(xpkg.ErrNoMeta, xpkg.Off)
	b.ReportAllocs()
	for b.Loop() {
		folder, err := xpkg.ReadFolder(os.DirFS(dir), xpkg.FolderOptions{})
		if err != nil {
			b.Skip(err)
		}
		findings := check.Folder(folder, xpkg.ReadOptions{Policy: policy}, check.Options{
			Policy: policy, CRDs: crdvalidation.ValidateCRD,
		})
		if err := xpkg.Failed(findings); err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(folder.Stream())))
	}
}

// TestReadNeedsLittleMemory proves that reading the largest provider never holds
// more than three times its size, the stream itself included.
func TestReadNeedsLittleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a hundred megabytes")
	}
	folder, stream := largest(t)
	*folder = xpkg.Folder{}
	runtime.GC()
	before := heap()
	peak, stop := watchHeap()
	pkg, err := xpkg.Read(stream, xpkg.ReadOptions{})
	stop()
	if err != nil {
		t.Fatal(err)
	}
	most := peak.Load() - before + uint64(len(stream))
	t.Logf("%d MB of YAML took %d MB at most", len(stream)>>20, most>>20)
	if most > 3*uint64(len(stream)) {
		t.Errorf("reading %d MB took %d MB", len(stream)>>20, most>>20)
	}
	runtime.KeepAlive(pkg)
}

// heap returns the allocated memory, including garbage.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// watchHeap looks at the heap all the time until it is stopped.
func watchHeap() (peak *atomic.Uint64, stop func()) {
	peak = new(atomic.Uint64)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			peak.Store(max(peak.Load(), heap()))
			select {
			case <-done:
				return
			default:
				runtime.Gosched()
			}
		}
	}()
	return peak, func() { close(done); <-ended }
}
