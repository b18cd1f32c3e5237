package origin

import (
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/content"
	"github.com/xpkg-dev/xpkg/internal/imageconfig"
	"github.com/xpkg-dev/xpkg/internal/oci"
)

// Without gives the origin of an image by ImageConfigs that are at hand, without a
// cluster. Its pull secrets are not: the credentials of this machine are used. It
// fails as [Finder.Find] does.
func Without(configs []v1beta1.ImageConfig, ref oci.Reference) (content.Origin, error) {
	route, err := imageconfig.Choose(ref.String(), nil, configs)
	if err != nil {
		return content.Origin{}, err
	}
	for i := range route.Sources {
		route.Sources[i].PullSecrets = nil
	}
	return Finder{}.origin(ref.String(), route)
}
