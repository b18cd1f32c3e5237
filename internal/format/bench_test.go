package format

import (
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/corpus"
)

// largest is the stream of the largest provider of the corpus.
func largest(tb testing.TB) []byte {
	tb.Helper()
	dir := filepath.Join(corpus.Dir(tb), "providers", "crossplane-contrib__provider-upjet-aws@v2.6.0", "package", "crds")
	stream, err := largestStream(dir)
	if err != nil {
		tb.Skipf("the largest provider of the corpus cannot be read: %v", err)
	}
	return stream
}

var largestStream = func() func(string) ([]byte, error) {
	var once sync.Once
	var stream []byte
	var err error
	return func(dir string) ([]byte, error) {
		once.Do(func() {
			var f *Folder
			if f, err = ReadFolder(os.DirFS(dir), FolderOptions{}); err == nil {
				stream = append([]byte(providerMeta+"---\n"), f.Stream()...)
			}
		})
		return stream, err
	}
}()

// BenchmarkReadCold reads the largest provider from its YAML.
func BenchmarkReadCold(b *testing.B) {
	stream := largest(b)
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	for b.Loop() {
		pkg, err := Read(stream, ReadOptions{})
		if err != nil {
			b.Fatal(err)
		}
		runtime.KeepAlive(pkg)
	}
}
