package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// maxStalls is the maximum number of consecutive interruptions of a download without
// progress.
const maxStalls = 5

// openBlob opens a blob of a registry. It reconnects after a broken connection and
// resumes the download; the caller verifies the digest of the whole. The reader returns
// at most one byte more than the descriptor's size.
func (r *Client) openBlob(ctx context.Context, ref oci.Reference, d oci.Descriptor) (io.ReadCloser, error) {
	s := r.session(ref.Host())
	ctx, cancel := s.deadline(ctx, d.Size)
	b := &blobReader{ctx: ctx, cancel: cancel, s: s, desc: d, call: call{
		method:     http.MethodGet,
		url:        s.url("/v2/" + ref.RepositoryPath() + "/blobs/" + d.Digest.String()),
		repository: ref.RepositoryPath(), actions: pullActions,
		what: fmt.Sprintf("download %s of %s", d.Digest.Short(), ref.Name()),
	}}
	if err := b.connect(); err != nil {
		cancel()
		return nil, err
	}
	return b.s.progress(b, d, false), nil
}

type blobReader struct {
	ctx    context.Context // It bounds the whole download; io.Reader has no context parameter.
	cancel context.CancelFunc
	s      *session
	desc   oci.Descriptor
	call   call
	body   io.ReadCloser
	offset int64
	stalls int
}

// Read implements [io.Reader].
func (b *blobReader) Read(p []byte) (int, error) {
	for {
		n, err := b.body.Read(p)
		b.offset += int64(n)
		if n > 0 {
			b.stalls = 0
		}
		if err == nil || errors.Is(err, io.EOF) || b.offset >= b.desc.Size {
			return n, err
		}
		if n > 0 {
			return n, nil
		}
		if err := b.resume(err); err != nil {
			return 0, err
		}
	}
}

// Close implements [io.Closer].
func (b *blobReader) Close() error {
	defer b.cancel()
	return b.body.Close()
}

// resume reconnects after a failure.
func (b *blobReader) resume(cause error) error {
	b.stalls++
	if b.stalls > maxStalls || b.ctx.Err() != nil || !canPass(cause) {
		return b.s.networkError(b.ctx, cause, b.call.what)
	}
	if b.stalls > 1 {
		if err := b.s.opts.Sleep(b.ctx, b.s.opts.backoff(b.stalls-1)); err != nil {
			return b.s.networkError(b.ctx, err, b.call.what)
		}
	}
	_ = b.body.Close()
	return b.connect()
}

// connect requests the remaining bytes as a range with both ends: several registries do
// not support an open range.
func (b *blobReader) connect() error {
	b.call.header = http.Header{}
	if b.offset > 0 {
		b.call.header.Set("Range", fmt.Sprintf("bytes=%d-%d", b.offset, b.desc.Size-1))
	}
	resp, err := b.s.do(b.ctx, b.call)
	if err != nil {
		return err
	}
	b.body = resp.Body
	switch {
	case resp.StatusCode == http.StatusOK:
		return b.whole(resp)
	case resp.StatusCode == http.StatusPartialContent && b.offset > 0 &&
		strings.HasPrefix(resp.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", b.offset)):
		return nil
	}
	defer drain(resp)
	if resp.StatusCode == http.StatusNotFound {
		return oci.ErrBlobMissing.New(nil, "cannot %s: registry %s does not have it", b.call.what, b.s.host)
	}
	return b.s.statusError(resp, b.call)
}

// whole handles a response that starts at the first byte, whether that was requested or
// the registry does not support ranges.
func (b *blobReader) whole(resp *http.Response) error {
	if resp.ContentLength >= 0 && resp.ContentLength != b.desc.Size {
		_ = resp.Body.Close()
		return oci.ErrSizeMismatch.New(
			nil, "cannot %s: the registry announces %d bytes, the descriptor %d", b.call.what, resp.ContentLength, b.desc.Size,
		)
	}
	if t := contentType(resp.Header); t == "text/html" {
		_ = resp.Body.Close()
		return oci.ErrUnexpectedMediaType.New(nil, "cannot %s: registry %s responded with %q", b.call.what, b.s.host, t)
	}
	if b.offset == 0 {
		return nil
	}
	if _, err := io.CopyN(io.Discard, resp.Body, b.offset); err != nil {
		_ = resp.Body.Close()
		return b.s.networkError(b.ctx, err, b.call.what)
	}
	return nil
}

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

// progress returns a reader of r that reports the bytes read.
func (s *session) progress(r io.ReadCloser, d oci.Descriptor, upload bool) io.ReadCloser {
	if s.opts.Progress == nil {
		return r
	}
	return &progressReader{ReadCloser: r, report: s.opts.Progress, transfer: Transfer{
		Upload: upload, Digest: d.Digest, Total: d.Size,
	}}
}

type progressReader struct {
	io.ReadCloser
	report   func(Transfer)
	transfer Transfer
}

func (p *progressReader) Read(b []byte) (int, error) {
	n, err := p.ReadCloser.Read(b)
	p.transfer.Done += int64(n)
	if n > 0 {
		p.report(p.transfer)
	}
	return n, err
}
