package origin

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/imageconfig"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Locate returns the origin of the image of a package or a revision. A package that is
// never pulled can have any name: the name of a file in the package cache (packages
// guide, "Pre-Populating the Package Cache"). Its origin has no places, and must be signed as
// the ImageConfigs that match the name require.
func (f Finder) Locate(
	ctx context.Context, image string, secrets []corev1.LocalObjectReference, policy corev1.PullPolicy,
) (fetch.Origin, imageconfig.Route, error) {
	if policy == corev1.PullNever {
		if _, err := oci.ParseReference(image, oci.ParseOptions{}); err != nil {
			return f.named(ctx, image)
		}
	}
	names := make([]string, len(secrets))
	for i, s := range secrets {
		names[i] = s.Name
	}
	return f.Find(ctx, image, names)
}

func (f Finder) named(ctx context.Context, name string) (fetch.Origin, imageconfig.Route, error) {
	configs, err := f.configs(ctx)
	if err != nil {
		return fetch.Origin{}, imageconfig.Route{}, err
	}
	chosen, err := imageconfig.Choose(name, nil, configs)
	if err != nil {
		return fetch.Origin{}, imageconfig.Route{}, err
	}
	return fetch.Origin{Ref: oci.Reference{Repository: name}, Signed: f.signed(chosen.Verifications)},
		imageconfig.Route{Image: name, Verifications: chosen.Verifications}, nil
}
