// Package versions compares installed or locked packages with the versions in their registries, and selects the newest
// versions that fit together.
package versions

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/inventory"
	"github.com/xpkg-dev/xpkg/internal/operation"
	"github.com/xpkg-dev/xpkg/internal/origin"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
)

// Locate returns the location of a package.
type Locate = func(context.Context, oci.Reference) (fetch.Origin, error)

// Finder finds the versions of the packages of a dependency tree.
type Finder struct {
	*resolver.Resolver
	Content *fetch.Source
	Locate  Locate
	Report  operation.Reporter
	// Explain resolves a tree, and reports its notes and the explanation of a conflict. It is the method Resolve
	// otherwise.
	Explain func(context.Context, resolver.Request) (resolver.Result, error)
}

// Remembering returns a registry that is asked only once for each list of versions and each version.
func Remembering(r resolver.Registry) resolver.Registry { return &rememberingRegistry{Registry: r} }

// resolve resolves a tree with Explain.
func (r *Finder) resolve(ctx context.Context, q resolver.Request) (resolver.Result, error) {
	if r.Explain == nil {
		return r.Resolve(ctx, q)
	}
	return r.Explain(ctx, q)
}

// LocatorIn returns the function that locates packages with the configuration of a cluster.
func LocatorIn(cluster client.Reader, namespace string, all *inventory.Inventory) Locate {
	finder := origin.Finder{Reader: origin.ListOnce(cluster), Secrets: cluster, Namespace: namespace}
	secrets := pullSecrets(all.Packages)
	return func(ctx context.Context, ref oci.Reference) (fetch.Origin, error) {
		o, _, err := finder.Find(ctx, ref.String(), secrets[ref.Location()])
		return o, err
	}
}

// pullSecrets returns the pull secrets of installed packages, by the locations of their repositories.
func pullSecrets(packages []v1.Package) map[string][]string {
	out := map[string][]string{}
	for _, p := range packages {
		at := oci.RepositoryLocation(p.PackageSpec().Package)
		for _, s := range p.PackageSpec().PackagePullSecrets {
			out[at] = append(out[at], s.Name)
		}
	}
	return out
}
