// Package selection selects the packages that a command line names, and reads them from the cluster of its flags.
package selection

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/state"
)

// Read reads the packages of the cluster with Load, LoadPackages or LoadNamed.
func Read(ctx context.Context, f connection.ClusterFlags, read func(context.Context, client.Client) (*inventory.Inventory, error)) (client.Client, *inventory.Inventory, error) {
	cluster, err := f.Client(ctx)
	if err != nil {
		return nil, nil, err
	}
	all, err := read(ctx, cluster)
	return cluster, all, err
}

// ReadUses returns the uses of Providers by objects of the first generation of all namespaces, and none in a cluster without them.
// Unlike [inventory.ReadObjects], it fails if the user is not allowed to read them.
func ReadUses(ctx context.Context, cluster client.Client, flags connection.ClusterFlags) (state.Uses, error) {
	cfg, err := flags.Config(ctx)
	if err != nil {
		return state.Uses{}, err
	}
	kinds, err := apply.NewCluster(cfg)
	if err != nil {
		return state.Uses{}, err
	}
	uses, err := state.ReadUses(ctx, kinds, cluster)
	return uses, apiserver.Classify(err, "read the objects of %s that use packages", packagesv1alpha1.Group)
}
