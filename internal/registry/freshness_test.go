package registry_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/internal/registry"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// BenchmarkPushUntilFound measures the time from a push until the search finds the kind: of a server with its own
// content, also in the published index that commands read, and of a server in front of another registry, to which the
// package was pushed.
func BenchmarkPushUntilFound(b *testing.B) {
	b.Run("embedded", func(b *testing.B) {
		s := start(b, nil)
		client := newReader(b, s)
		var slowest, published time.Duration
		for i := 0; b.Loop(); i++ {
			kind := fmt.Sprintf("Boat%d", i)
			began := time.Now()
			s.mustPush(b, fmt.Sprintf("acme/provider-boats-of-kind%d:v1.0.0", i), kind)
			s.waitUntil(b, "the kind is found", func() bool { return len(s.found(b, "", "kind:"+kind)) == 1 })
			slowest = max(slowest, time.Since(began))
			s.waitUntil(b, "the index is published", func() bool { return slices.Contains(client.kinds(b), kind) })
			published = max(published, time.Since(began))
		}
		b.ReportMetric(slowest.Seconds(), "s/found(goal:2)")
		b.ReportMetric(published.Seconds(), "s/published(goal:2)")
	})
	b.Run("front", func(b *testing.B) {
		address := startRegistry(b)
		direct := remote.New(remote.Options{})
		b.Cleanup(direct.Close)
		s := start(b, func(o *registry.Options) {
			o.Backend = &registry.BackendOptions{Host: address, PlainHTTP: true, Repositories: []string{"acme/provider-boats"}}
		})
		s.waitUntil(b, "the first index is ready", func() bool { return s.Site().Healthy() == nil })
		var slowest time.Duration
		for i := 0; b.Loop(); i++ {
			began := time.Now()
			kind := fmt.Sprintf("Boat%d", i)
			ref := oci.MustParseReference(fmt.Sprintf("%s/acme/provider-boats:v1.%d.0", address, i))
			if _, err := direct.Push(b.Context(), ref, build(b, packageYAML("provider-boats", kind))); err != nil {
				b.Fatal(err)
			}
			s.waitAtMost(b, 3*time.Minute, "the kind is found", func() bool { return len(s.found(b, "", "kind:"+kind)) == 1 })
			slowest = max(slowest, time.Since(began))
		}
		b.ReportMetric(slowest.Seconds(), "s/found(goal:60)")
	})
}
