package apply_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// BenchmarkMigration updates a CRD that drops the stored version of 10,000 custom resources, while 20 clients write them,
// beside a bare client that only writes each of them once.
func BenchmarkMigration(b *testing.B) {
	const resources, clients = 10000, 20
	for _, bench := range []struct {
		name string
		busy int
		bare bool
	}{{"bare", 0, true}, {"idle", 0, false}, {"busy", clients, false}} {
		b.Run(bench.name, func(b *testing.B) {
			for i := range b.N {
				b.StopTimer()
				h := newHarbor(b, fmt.Sprintf("%s%d.bench.storage.test", bench.name, i), resources, nil)
				k := other(b)
				var stopped atomic.Bool
				var writers sync.WaitGroup
				for w := range bench.busy {
					writers.Go(func() {
						for n := w + 1; !stopped.Load(); n = (n+clients)%(resources-1) + 1 {
							patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"n":"%d"}}}`, n))
							if err := k.Patch(b.Context(), h.boat("v1", fmt.Sprint("boat-", n)), patch); err != nil {
								b.Error(err)
							}
						}
					})
				}
				b.StartTimer()
				if bench.bare {
					var group errgroup.Group
					group.SetLimit(8)
					for n := 1; n < resources; n++ {
						group.Go(func() error {
							patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))
							return k.Patch(b.Context(), h.boat("v1", fmt.Sprint("boat-", n)), patch)
						})
					}
					if err := group.Wait(); err != nil {
						b.Fatal(err)
					}
				} else if p, err := h.update(b.Context(), newCluster(b, nil), marshal(b, h.dropped())); err != nil || len(p.Refusals) > 0 {
					b.Fatalf("%+v, %v", p.Refusals, err)
				}
				stopped.Store(true)
				writers.Wait()
			}
		})
	}
}
