//go:build unix

package search_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/registry/search"
	"github.com/xpkg-dev/xpkg/internal/testing/largecatalog"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
)

// BenchmarkSearchCPU reports the CPU time of single queries in a database of 200,000 kinds. It does not depend on other processes of the
// machine: with 50 queries in each second, two processors are busy for 20 times this time of each second.
func BenchmarkSearchCPU(b *testing.B) {
	c := largecatalog.Build(b, 1000)
	d, err := search.Open(b.Context(), filepath.Join(b.TempDir(), "search.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = d.Close() })
	if err := d.Sync(b.Context(), c); err != nil {
		b.Fatal(err)
	}
	for _, text := range loadQueries {
		b.Run(text, func(b *testing.B) {
			q, err := catalog.ParseQuery(text)
			if err != nil {
				b.Fatal(err)
			}
			before := processorTime(b)
			for b.Loop() {
				if _, err := d.Search(b.Context(), c, q, 20, everything); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric((processorTime(b)-before)*1000/float64(b.N), "cpu-ms/op")
		})
	}
}

// processorTime returns the CPU time of this process in seconds.
func processorTime(b *testing.B) float64 {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	seconds := func(t syscall.Timeval) float64 { return float64(t.Nano()) / 1e9 }
	return seconds(usage.Utime) + seconds(usage.Stime)
}
