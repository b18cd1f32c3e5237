// Package firstgeneration contains the flags and the commands for the first generation of packages.
package firstgeneration

import (
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/controller/firstgen"
	"github.com/xpkg-dev/xpkg/internal/controller/firstgen/setup"
)

// Flags configures the packages of the first generation.
type Flags struct {
	FirstGeneration         bool     `help:"Install and serve the API packages.crossplane.io of the first generation of packages. A manager also serves it in a cluster in which it was served before."`
	ClusterInstallNamespace []string `placeholder:"NAMESPACE" help:"Further namespace in which ClusterPackageInstalls are accepted, or * for all: its users can install any package. Can be given more than once."`
	NamespacedPackage       []string `placeholder:"REPOSITORY" help:"Prefix of repositories, or *, from which PackageInstalls may install CRDs without an administrator. Can be given more than once."`
	InstallSource           string   `placeholder:"REGISTRY" help:"Registry of install objects that name none. Default is docker.io."`
	TemplatingController    string   `placeholder:"IMAGE" help:"Image of the controller of packages with templates that name none. Default is crossplane/templating-controller:v0.4.0 in the registry of the package."`
}

// Extension returns the API for the manager.
func (f Flags) Extension() controller.Extension {
	return setup.Extension(firstgen.Options{
		Enabled: f.FirstGeneration, ClusterNamespaces: f.ClusterInstallNamespace, NamespacedPackages: f.NamespacedPackage,
		Registry:        f.InstallSource,
		TemplatingImage: f.TemplatingController,
	})
}
