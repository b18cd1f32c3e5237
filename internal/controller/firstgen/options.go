package firstgen

import (
	"cmp"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// DefaultRegistry is the registry of references that name none.
const DefaultRegistry = "docker.io"

// DefaultTemplatingImage is the image of the last release of the templating controller, in the registry of the package.
const DefaultTemplatingImage = "crossplane/templating-controller:v0.4.0"

// All allows every namespace or repository in Options.
const All = "*"

// Options configure the packages of the first generation.
type Options struct {
	// Enabled installs the CRDs and starts the controllers. The controllers also start in a cluster in which a manager has
	// installed the CRDs.
	Enabled bool
	// ClusterNamespaces are the namespaces, besides the namespace of the manager, in which ClusterPackageInstalls and
	// Packages with the scope Cluster are accepted. Their authors administer the cluster.
	ClusterNamespaces []string
	// NamespacedPackages are prefixes of repositories, or All. For a PackageInstall of such a package, the manager
	// installs the CRDs if no administrator has.
	NamespacedPackages []string
	// Registry is the registry of references that name none. Empty means DefaultRegistry.
	Registry string
	// TemplatingImage is the image of the controller of packages with templates that name none. Empty means
	// DefaultTemplatingImage.
	TemplatingImage string
}

func (o Options) registry() string { return cmp.Or(o.Registry, DefaultRegistry) }

// administers reports whether the authors of objects in a namespace administer the cluster.
func (o Options) administers(namespace, manager string) bool {
	return namespace == manager || slices.Contains(o.ClusterNamespaces, namespace) ||
		slices.Contains(o.ClusterNamespaces, All)
}

// installsFor reports whether the manager installs the CRDs of a repository for PackageInstalls. A prefix ends at the
// end of a part of the path.
func (o Options) installsFor(ref oci.Reference) bool {
	return slices.ContainsFunc(o.NamespacedPackages, func(prefix string) bool {
		prefix = strings.TrimSuffix(prefix, "/")
		return prefix == All || ref.Name() == prefix || strings.HasPrefix(ref.Name(), prefix+"/")
	})
}
