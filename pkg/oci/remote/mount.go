package remote

import (
	"context"
	"io"
	"net/http"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// HasBlob reports whether a repository has a blob. A later push to another repository of the registry can mount it.
func (r *Client) HasBlob(ctx context.Context, repository oci.Reference, d oci.Digest) (bool, error) {
	what := "look for " + d.Short() + " in " + repository.Name()
	ans, err := r.session(repository.Host()).headBlob(ctx, repository, d, pullActions, what)
	if ans.Response != nil && ans.StatusCode == http.StatusNotFound {
		return false, nil
	}
	return err == nil, err
}

// OpenBlob opens a blob of a repository. The caller verifies its content.
func (r *Client) OpenBlob(ctx context.Context, repository oci.Reference, d oci.Descriptor) (io.ReadCloser, error) {
	return r.openBlob(ctx, repository, d)
}

// headBlob requests whether a repository has a blob, and remembers where it was seen.
func (s *session) headBlob(
	ctx context.Context, repository oci.Reference, d oci.Digest, actions, what string,
) (answer, error) {
	ans, err := s.read(ctx, call{
		method: http.MethodHead, url: s.url("/v2/" + repository.RepositoryPath() + "/blobs/" + d.String()),
		repository: repository.RepositoryPath(), actions: actions, what: what, replaceable: true,
	}, 0)
	if err == nil {
		s.seeBlob(repository, d)
	}
	return ans, err
}

// seeBlob remembers that a repository has a blob.
func (s *session) seeBlob(repository oci.Reference, d oci.Digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.blobs != nil && s.blobs[d] == "" {
		s.blobs[d] = repository.RepositoryPath()
	}
}

// blobAt returns a repository from which a blob can be mounted, or "".
func (s *session) blobAt(d oci.Digest) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.blobs[d]
}

// stopMounting forgets where blobs were seen.
func (s *session) stopMounting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blobs = nil
}
