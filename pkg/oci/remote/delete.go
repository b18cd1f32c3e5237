package remote

import (
	"context"
	"net/http"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Delete deletes the manifest with the digest of a reference, and with it all of its tags in the repository. It fails
// with ErrManifestNotFound if there is none.
func (r *Client) Delete(ctx context.Context, ref oci.Reference) error {
	if ref.Digest.IsZero() {
		return oci.ErrInvalidReference.New(nil, "reference %s has no digest", ref)
	}
	s := r.session(ref.Host())
	ctx, cancel := s.deadline(ctx, 0)
	defer cancel()
	c := call{
		method: http.MethodDelete, url: s.url("/v2/" + ref.RepositoryPath() + "/manifests/" + ref.Digest.String()),
		repository: ref.RepositoryPath(), actions: deleteActions, what: "delete " + ref.String(),
	}
	resp, err := s.do(ctx, c)
	if err != nil {
		return err
	}
	defer drain(resp)
	switch resp.StatusCode {
	case http.StatusAccepted, http.StatusOK, http.StatusNoContent:
		return nil
	case http.StatusNotFound:
		return oci.ErrManifestNotFound.New(nil, "%s does not exist in %s", ref.Digest, ref.Name())
	}
	return s.statusError(resp, c)
}
