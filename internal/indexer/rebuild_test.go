package indexer

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"
	"time"
)

// BenchmarkRebuild builds the index of 20,000 versions with an index layer from a registry that responds after 30 ms,
// on two machines without any cache. It reports the time and the requests of one of them, next to their goals, and
// fails if their indexes differ in a byte.
func BenchmarkRebuild(b *testing.B) {
	const packages, versions, latency = 400, 50, 30 * time.Millisecond
	s := newServer(b)
	var names []string
	for i := range packages {
		name := fmt.Sprintf("provider-%d", i)
		names = append(names, name)
		for v := range versions {
			s.push(b, name, fmt.Sprintf("v1.%d.0", v), true, "Bucket", fmt.Sprintf("Kind%d", v))
		}
	}
	s.change = func(_ http.ResponseWriter, r *http.Request) bool {
		select {
		case <-time.After(latency):
		case <-r.Context().Done():
		}
		return false
	}
	b.ResetTimer()
	for b.Loop() {
		var took [2]time.Duration
		var requests [2]int64
		var manifests [2][]byte
		for i := range took {
			m := newMachine(b, nil)
			m.Parallel = 0 // the default
			s.requests.Store(0)
			start := time.Now()
			c := build(b, m, s.config(names...))
			took[i], requests[i] = time.Since(start), s.requests.Load()
			image, _, err := (&Publishing{Catalog: c, Created: day(1)}).Encode()
			if err != nil {
				b.Fatal(err)
			}
			manifests[i] = image.Manifest.Raw
		}
		if !bytes.Equal(manifests[0], manifests[1]) {
			b.Error("two machines build different indexes")
		}
		b.ReportMetric(max(took[0], took[1]).Seconds(), "s/rebuild(goal:60)")
		b.ReportMetric(float64(requests[0])/(packages*versions), "requests/version(goal:2)")
	}
}
