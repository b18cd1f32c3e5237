package cache

import (
	"fmt"
	"testing"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// BenchmarkMakeRoom measures the cost of the limit for a write, in a cache of a thousand
// packages: with free room, and with an eviction.
func BenchmarkMakeRoom(b *testing.B) {
	clock := newClock()
	dir := b.TempDir()
	// Fewer waits for the disk while the cache is filled: only the limit is measured.
	c, err := Open(dir, Options{Now: clock.Now})
	must(b, err)
	for i := range 1000 {
		must(b, put(b.Context(), c, image(b, fmt.Sprint("package-", i), 1000)))
		key := store.DerivedKey{Digest: oci.DigestOf([]byte{byte(i), byte(i >> 8)}), Name: "index"}
		must(b, c.store.PutDerived(b.Context(), key, make([]byte, 1000)))
		clock.advance(time.Second)
	}
	clock.advance(time.Hour)
	total := diskSize(b, c)
	must(b, c.Close())
	for name, limit := range map[string]int64{"Room": 2 * total, "Full": total} {
		b.Run(name, func(b *testing.B) {
			c, err := Open(dir, Options{Limit: limit, Now: clock.Now})
			must(b, err)
			defer c.Close()
			need := store.Need{Bytes: 1000}
			for b.Loop() {
				must(b, c.makeRoom(b.Context(), need, func() error { return nil }))
				if name == "Full" && need.Bytes < total/2 {
					need.Bytes += 1000 // Each time something has to go.
				}
			}
		})
	}
}
