package catalog_test

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/testing/largecatalog"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
)

// loadQueries are the queries of the benchmarks, with the most common word among them.
var loadQueries = []string{
	"bucket", "provider", "cloud7 bucket", "policy role", "kind:BucketPolicyRole1", "group:*.cloud9.*", "buckt",
	"instance", "type:Provider sql", "s3",
}

func everything(string) bool { return true }

// BenchmarkSearchUnderLoad sends 50 queries in each second to an index of 200,000 kinds, and reports the 99th
// percentile of the response time next to its goal of 50 ms, the heap next to its goal of 250 MB, and the time to
// build the index next to a second.
func BenchmarkSearchUnderLoad(b *testing.B) {
	const (
		packages = 1000
		rate     = 50
	)
	c := largecatalog.Build(b, packages)
	without := heap()
	start := time.Now()
	x := catalog.NewSearchIndex(c)
	built := time.Since(start)
	with := heap()
	took := make([]time.Duration, 0, b.N)
	results := make(chan time.Duration, rate)
	ticker := time.NewTicker(time.Second / rate)
	defer ticker.Stop()
	b.ResetTimer()
	for i := range b.N {
		<-ticker.C
		q, err := catalog.ParseQuery(loadQueries[i%len(loadQueries)])
		if err != nil {
			b.Fatal(err)
		}
		go func() {
			start := time.Now()
			x.Search(q, 20, everything)
			results <- time.Since(start)
		}()
		for len(results) > 0 {
			took = append(took, <-results)
		}
	}
	for len(took) < b.N {
		took = append(took, <-results)
	}
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms(goal:50)")
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(with, "heap-MB(goal:250)")
	b.ReportMetric(with-without, "index-MB")
	b.ReportMetric(built.Seconds(), "build-s(goal:1)")
	runtime.KeepAlive(c)
}

// heap returns the size of the live heap in MiB.
func heap() float64 {
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return float64(memory.HeapAlloc) / (1 << 20)
}

// BenchmarkSearchIndex measures single queries in an index of 200,000 kinds, also those that cost most.
func BenchmarkSearchIndex(b *testing.B) {
	x := catalog.NewSearchIndex(largecatalog.Build(b, 1000))
	costly := []string{"a e i o u r s t n l c d b p k g", "s e i es is ies", "zzzz yyyy", "instnce polcy", "bucket/v1"}
	for _, text := range slices.Concat(loadQueries, costly) {
		b.Run(text, func(b *testing.B) {
			q, err := catalog.ParseQuery(text)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				x.Search(q, 20, everything)
			}
		})
	}
}
