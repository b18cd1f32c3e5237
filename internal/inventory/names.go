package inventory

import (
	"context"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/origin"
)

// LoadNamed is like Load, but with the canonical names of dependencies, as in the manager. ImageConfigs can
// give a package several names.
func LoadNamed(ctx context.Context, c client.Client) (*Inventory, error) {
	var place func(repository string) string
	var placeErr error
	var reads sync.WaitGroup
	reads.Go(func() { place, placeErr = (origin.Finder{Reader: c}).Rewrites(ctx) })
	all, err := Load(ctx, c)
	reads.Wait()
	if err != nil {
		return nil, err
	}
	if placeErr != nil {
		return nil, apiserver.Classify(placeErr, "read the image configs")
	}
	all.rewrites = place
	var nodes []graph.Node
	for _, p := range all.Packages {
		if n, ok := graph.NodeFromPackage(p, nil); ok {
			nodes = append(nodes, n)
		}
	}
	g := graph.New(nodes, all.rewrites)
	for _, entry := range all.Lock.Packages {
		for _, needs := range [][]v1beta1.Dependency{entry.Dependencies, entry.OptionalDependencies} {
			for i := range needs {
				needs[i].Package = g.Name(needs[i].Package)
			}
		}
	}
	return all, nil
}
