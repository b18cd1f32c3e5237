package graph

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/imageconfig"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
)

// Origins locates the content of an image, as origin.Finder does.
type Origins interface {
	Locate(
		ctx context.Context, image string, secrets []corev1.LocalObjectReference, policy corev1.PullPolicy,
	) (fetch.Origin, imageconfig.Route, error)
}

// Resolver returns a resolver for the dependencies of a package in the graph, from the locations that
// ImageConfigs configure, with the pull secrets of the package.
func (g *Graph) Resolver(lookup fetch.Lookup, origins Origins, of v1.Package) *resolver.Resolver {
	registry := fetch.NewRegistry(lookup, func(ctx context.Context, ref oci.Reference) (fetch.Origin, error) {
		origin, _, err := origins.Locate(ctx, ref.String(), inheritedPullSecrets(of), corev1.PullIfNotPresent)
		return origin, err
	})
	return &resolver.Resolver{Registry: registry, Canonical: g.Name, Hints: lookup}
}
