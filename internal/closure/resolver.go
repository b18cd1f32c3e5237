package closure

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/content"
	"github.com/xpkg-dev/xpkg/internal/imageconfig"
	"github.com/xpkg-dev/xpkg/internal/oci"
	"github.com/xpkg-dev/xpkg/internal/resolve"
)

// Origins tell where the content of an image is; an origin.Finder does.
type Origins interface {
	Locate(ctx context.Context, image string, secrets []corev1.LocalObjectReference, policy corev1.PullPolicy) (content.Origin, imageconfig.Route, error)
}

// Resolver resolves what a package of the graph needs, where image configs say that it
// is, with the pull secrets that the package passes on.
func (g *Graph) Resolver(registry resolve.Registry, origins Origins, of v1.Package) *resolve.Resolver {
	return &resolve.Resolver{Registry: registry, Name: g.Name, Locate: func(ctx context.Context, ref oci.Reference) (content.Origin, error) {
		origin, _, err := origins.Locate(ctx, ref.String(), Inherited(of), corev1.PullIfNotPresent)
		return origin, err
	}}
}
