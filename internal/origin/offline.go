package origin

import (
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/imageconfig"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Without returns the origin of an image from the given ImageConfigs, without a cluster.
// It uses the credentials of this machine instead of pull secrets. It fails as
// [Finder.Find] does.
func Without(configs []v1beta1.ImageConfig, ref oci.Reference) (fetch.Origin, error) {
	route, err := imageconfig.Choose(ref.String(), nil, configs)
	if err != nil {
		return fetch.Origin{}, err
	}
	for i := range route.Sources {
		route.Sources[i].PullSecrets = nil
	}
	return Finder{}.origin(ref.String(), route)
}
