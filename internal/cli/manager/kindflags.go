package manager

import (
	"context"
	"time"

	"github.com/xpkg-dev/xpkg/internal/cli/content"
	"github.com/xpkg-dev/xpkg/internal/indexer"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// KindFlags configures the indexes of the manager.
type KindFlags struct {
	Index []string `sep:" " placeholder:"REF[,PRIORITY]" env:"XPKG_INDEX" help:"Index in which packages are found for install objects that name a kind (spec.crd); repeat it for several. The index with the highest priority comes first; the default is 0."`
	content.IndexKeyFlag
}

// kindSources returns the sources of indexes for the manager, or nil without indexes, and a function that closes them.
// It fails if the keys of the indexes cannot be read.
func (o *ManagerOptions) kindSources(
	ctx context.Context, registries remote.Options, packages *store.Store,
) (sources func(context.Context, time.Duration) ([]provide.Source, error), closeSources func(), err error) {
	if len(o.Indexes) == 0 {
		return nil, func() {}, nil // The keys of a configuration file can be those of other commands.
	}
	if _, err := o.IndexKey.Keys(ctx); err != nil {
		return nil, nil, err
	}
	access := remote.New(registries)
	indexes := &content.RecentIndexes{
		Client: &indexer.Client{Remote: access, Store: packages}, Locations: o.Indexes, Key: o.IndexKey,
	}
	return indexes.Sources, access.Close, nil
}
