package fetch

import (
	"context"

	"github.com/xpkg-dev/xpkg/internal/packagestatus"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Status returns the status of the content with a digest from the first location that responds, and nil if it has none.
func (s *Source) Status(ctx context.Context, o Origin, d oci.Digest) (*catalog.VersionStatus, error) {
	return first(ctx, o, func(p Endpoint) (*catalog.VersionStatus, error) {
		c, err := s.clients.get(ctx, p)
		if err != nil {
			return nil, err
		}
		return packagestatus.Read(ctx, c.remote, p.Ref.WithDigest(d))
	})
}

// Status returns the status of a version with a digest, and nil if it has none. It makes no request unless the tags of
// the repository contain a status of the version.
func (r *Registry) Status(ctx context.Context, version oci.Reference, tags []string) (*catalog.Status, error) {
	if !packagestatus.Has(tags, version.Digest) {
		return nil, nil
	}
	o, err := r.locate(ctx, version)
	if err != nil {
		return nil, classifyLookup(err, version)
	}
	status, err := limited(
		ctx, &r.hosts, o, func() (*catalog.VersionStatus, error) { return r.lookup.Status(ctx, o, version.Digest) },
	)
	if err != nil || status == nil {
		return nil, err
	}
	return status.Normalize(), nil
}
