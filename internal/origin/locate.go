package origin

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/xpkg-dev/xpkg/internal/content"
	"github.com/xpkg-dev/xpkg/internal/imageconfig"
	"github.com/xpkg-dev/xpkg/internal/oci"
)

// Locate gives the origin of what a package or a revision asks for. A package
// that is never pulled can have any name, that of a file in the package cache
// (packages guide, "Pre-Populating the Package Cache"); its origin has no place.
func (f Finder) Locate(ctx context.Context, image string, secrets []corev1.LocalObjectReference, policy corev1.PullPolicy) (content.Origin, imageconfig.Route, error) {
	if policy == corev1.PullNever {
		if _, err := oci.ParseReference(image, oci.ParseOptions{}); err != nil {
			return content.Origin{Ref: oci.Reference{Repository: image}}, imageconfig.Route{Image: image}, nil
		}
	}
	names := make([]string, len(secrets))
	for i, s := range secrets {
		names[i] = s.Name
	}
	return f.Find(ctx, image, names)
}
