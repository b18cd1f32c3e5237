package manager

import (
	"context"
	"time"

	"github.com/xpkg-dev/xpkg/internal/cli/content"
	"github.com/xpkg-dev/xpkg/internal/controller/firstgen"
	"github.com/xpkg-dev/xpkg/internal/indexer"
	"github.com/xpkg-dev/xpkg/internal/provide"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// FirstGenerationFlags configures the packages of the first generation.
type FirstGenerationFlags struct {
	FirstGeneration         bool     `help:"Install and serve the API packages.crossplane.io of the first generation of packages. A manager also serves it in a cluster in which it was served before."`
	ClusterInstallNamespace []string `placeholder:"NAMESPACE" help:"Further namespace in which ClusterPackageInstalls are accepted, or * for all: its users can install any package. Can be given more than once."`
	NamespacedPackage       []string `placeholder:"REPOSITORY" help:"Prefix of repositories, or *, from which PackageInstalls may install CRDs without an administrator. Can be given more than once."`
	InstallSource           string   `placeholder:"REGISTRY" help:"Registry of install objects that name none. Default is docker.io."`
	TemplatingController    string   `placeholder:"IMAGE" help:"Image of the controller of packages with templates that name none. Default is crossplane/templating-controller:v0.4.0 in the registry of the package."`
	Index                   []string `sep:" " placeholder:"REF[,PRIORITY]" env:"XPKG_INDEX" help:"Index in which packages are found for install objects that name a kind (spec.crd); repeat it for several. The index with the highest priority comes first; the default is 0."`
	content.IndexKeyFlag
}

// FirstGenerationOptions returns the settings of the manager.
func (f FirstGenerationFlags) FirstGenerationOptions() firstgen.Options {
	return firstgen.Options{
		Enabled: f.FirstGeneration, ClusterNamespaces: f.ClusterInstallNamespace, NamespacedPackages: f.NamespacedPackage, Registry: f.InstallSource,
		TemplatingImage: f.TemplatingController,
	}
}

// kindSources returns the sources of indexes for the manager, or nil without indexes, and a function that closes them. It fails if
// the keys of the indexes cannot be read.
func (o *ManagerOptions) kindSources(ctx context.Context, registries remote.Options, packages *store.Store) (sources func(context.Context, time.Duration) ([]provide.Source, error), closeSources func(), err error) {
	if len(o.Indexes) == 0 {
		return nil, func() {}, nil // The keys of a configuration file can be those of other commands.
	}
	if _, err := o.IndexKey.Keys(ctx); err != nil {
		return nil, nil, err
	}
	access := remote.New(registries)
	indexes := &content.RecentIndexes{Client: &indexer.Client{Remote: access, Store: packages}, Locations: o.Indexes, Key: o.IndexKey}
	return indexes.Sources, access.Close, nil
}
