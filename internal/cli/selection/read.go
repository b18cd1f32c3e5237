// Package selection selects the packages that a command line names, and reads them from the cluster of its flags.
package selection

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/cli/connection"
	"github.com/xpkg-dev/xpkg/internal/frontend"
	"github.com/xpkg-dev/xpkg/internal/inventory"
)

// Read reads the packages of the cluster with Load, LoadPackages or LoadNamed.
func Read(ctx context.Context, f connection.ClusterFlags, read func(
	context.Context, client.Client,
) (*inventory.Inventory, error)) (client.Client, *inventory.Inventory, error) {
	cluster, err := f.Client(ctx)
	if err != nil {
		return nil, nil, err
	}
	all, err := read(ctx, cluster)
	return cluster, all, err
}

// ReadUses reads the uses of Providers as [inventory.ReadUses] does, with the kinds of the cluster of the flags.
func ReadUses(
	ctx context.Context, cluster client.Client, flags connection.ClusterFlags, api *frontend.API,
) (frontend.Uses, error) {
	cfg, err := flags.Config(ctx)
	if err != nil {
		return frontend.Uses{}, err
	}
	kinds, err := apply.NewCluster(cfg)
	if err != nil {
		return frontend.Uses{}, err
	}
	return inventory.ReadUses(ctx, cluster, kinds, api)
}
