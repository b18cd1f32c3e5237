package remote

import (
	"context"
	"net/http"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// RequiredHeader is the header with which a client asks a registry server of xpkg whether packages require a version that it may delete, in a request for the
// manifest, and with which the server affirms it in the response.
const RequiredHeader = "Xpkg-Required"

// IsRequired reports whether a registry server of xpkg has packages that require a version, also such that the client may not read. It is false if the
// registry is another one, or if the client may not delete the version. It costs one request.
func (r *Client) IsRequired(ctx context.Context, version oci.Reference) (bool, error) {
	s := r.session(version.Host())
	c := s.manifestCall(version.WithDigest(oci.Digest{}), http.MethodHead)
	c.header.Set(RequiredHeader, "true")
	ans, err := s.read(ctx, c, r.opts.Limits.Manifest)
	if ans.Response != nil && ans.StatusCode == http.StatusNotFound {
		return false, nil
	}
	return err == nil && ans.Header.Get(RequiredHeader) != "", err
}
