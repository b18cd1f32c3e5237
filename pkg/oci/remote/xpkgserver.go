package remote

import (
	"context"
	"net/http"
	"net/url"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// RepositoryStateHeader is the header with which a registry server of xpkg identifies the state of a repository in a
// response with its tags. The state changes with every manifest, tag and referrer.
const RepositoryStateHeader = "Xpkg-Repository-State"

// longestState is the maximum length of a state.
const longestState = 128

// RepositoryState returns the state of a repository: two equal states mean that the repository has not changed. It is
// empty if the registry states none, or if the repository does not exist. It costs one request.
func (r *Client) RepositoryState(ctx context.Context, repository oci.Reference) (string, error) {
	s := r.session(repository.Host())
	c := s.tagsCall(repository)
	c.url.RawQuery = url.Values{"n": {"1"}}.Encode()
	c.what = "read the state of " + repository.Name()
	ans, err := s.read(ctx, c, r.opts.Limits.Manifest)
	if ans.Response != nil && (ans.StatusCode == http.StatusNotFound || refusesPageSize(ans, err)) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	state := ans.Header.Get(RepositoryStateHeader)
	if len(state) > longestState {
		return "", nil
	}
	return state, nil
}

// RequiredHeader is the header with which a client asks a registry server of xpkg whether packages require a version
// that it may delete, in a request for the manifest, and with which the server affirms it in the response.
const RequiredHeader = "Xpkg-Required"

// IsRequired reports whether a registry server of xpkg has packages that require a version, also such that the client
// may not read. It is false if the registry is another one, or if the client may not delete the version. It costs one
// request.
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
