package origin

import (
	"context"
	"slices"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Rewrites lists the ImageConfigs once and returns a function that maps a repository to the location, as
// [oci.RepositoryLocation], of the repository from which it is pulled. A repository that cannot be rewritten maps to
// its own location.
func (f Finder) Rewrites(ctx context.Context) (func(repository string) string, error) {
	configs, err := f.configs(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(configs, func(c v1beta1.ImageConfig) bool { return c.Spec.RewriteImage != nil }) {
		return oci.RepositoryLocation, nil
	}
	return func(repository string) string {
		// Prefixes are compared with whole references.
		o, _, err := f.among(configs, repository+":latest", nil)
		if err != nil {
			return oci.RepositoryLocation(repository)
		}
		return o.Ref.Location()
	}, nil
}
