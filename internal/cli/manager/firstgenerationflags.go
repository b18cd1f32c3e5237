package manager

import (
	"github.com/xpkg-dev/xpkg/internal/controller/firstgen"
)

// FirstGenerationFlags configures the packages of the first generation.
type FirstGenerationFlags struct {
	FirstGeneration         bool     `help:"Install and serve the API packages.crossplane.io of the first generation of packages. A manager also serves it in a cluster in which it was served before."`
	ClusterInstallNamespace []string `placeholder:"NAMESPACE" help:"Further namespace in which ClusterPackageInstalls are accepted, or * for all: its users can install any package. Can be given more than once."`
	NamespacedPackage       []string `placeholder:"REPOSITORY" help:"Prefix of repositories, or *, from which PackageInstalls may install CRDs without an administrator. Can be given more than once."`
	InstallSource           string   `placeholder:"REGISTRY" help:"Registry of install objects that name none. Default is docker.io."`
}

// FirstGenerationOptions returns the settings of the manager.
func (f FirstGenerationFlags) FirstGenerationOptions() firstgen.Options {
	return firstgen.Options{
		Enabled: f.FirstGeneration, ClusterNamespaces: f.ClusterInstallNamespace, NamespacedPackages: f.NamespacedPackage, Registry: f.InstallSource,
	}
}
