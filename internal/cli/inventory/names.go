package inventory

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/origin"
)

// LoadNamed is like Load, but with the canonical names of dependencies, as in the manager. ImageConfigs can
// give a package several names.
func LoadNamed(ctx context.Context, c client.Client) (*Inventory, error) {
	all, err := Load(ctx, c)
	if err != nil {
		return nil, err
	}
	if all.place, err = (origin.Finder{Reader: c}).Rewrites(ctx); err != nil {
		return nil, connection.Classify(err, "read the image configs")
	}
	var nodes []graph.Node
	for _, p := range all.Packages {
		if n, ok := graph.NodeFromPackage(p, nil); ok {
			nodes = append(nodes, n)
		}
	}
	g := graph.New(nodes, all.place)
	for _, entry := range all.Lock.Packages {
		for _, needs := range [][]v1beta1.Dependency{entry.Dependencies, entry.OptionalDependencies} {
			for i := range needs {
				needs[i].Package = g.Name(needs[i].Package)
			}
		}
	}
	return all, nil
}
