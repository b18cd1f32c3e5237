package remote

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/assembly"
)

// Push uploads an artifact to a repository, the root last and under the tag of the
// reference, so a tag never refers to an incomplete artifact. It skips content that the
// repository has, and the tag if it has the digest of the root. Content that the client has
// seen in another repository of the registry is mounted from there, if the registry can. It
// returns the digest of the root, and
// fails before the first upload if the reference has a different one. It fails with
// ErrImmutable if the tag has another digest, and the registry does not replace it.
func (r *Client) Push(ctx context.Context, ref oci.Reference, a oci.Artifact) (oci.Digest, error) {
	root := a.Root()
	if !ref.Digest.IsZero() && ref.Digest != root.Digest {
		return oci.Digest{}, oci.ErrInvalidReference.New(nil, "%s cannot be pushed as %s", root.Digest, ref).
			WithDo("Push to a tag, or omit the digest.")
	}
	p := pusher{remote: r, s: r.session(ref.Host()), ref: ref, artifact: a, root: root.Digest}
	p.current = p.tagDigest(ctx, false)
	err := oci.Walk(ctx, a, r.opts.Limits, p.visit)
	if err == nil && p.current == root.Digest && !p.changed && r.opts.Unchanged != nil {
		r.opts.Unchanged(ref)
	}
	return root.Digest, err
}

// To returns a Destination that pushes to the repository of a reference, with its tag if
// it has one.
func (r *Client) To(ref oci.Reference) oci.Destination { return repository{r, ref} }

type repository struct {
	remote *Client
	ref    oci.Reference
}

func (d repository) Write(ctx context.Context, a oci.Artifact) (oci.Digest, error) {
	return d.remote.Push(ctx, d.ref, a)
}

type pusher struct {
	remote   *Client
	s        *session
	ref      oci.Reference
	artifact oci.Artifact
	root     oci.Digest
	// current is the digest that the tag had before the push; zero if there was none.
	current oci.Digest
	// changed is true once content was written.
	changed bool
}

func (p *pusher) visit(ctx context.Context, d oci.Descriptor, raw []byte) error {
	if raw != nil {
		return p.manifest(ctx, d, raw)
	}
	return p.blob(ctx, d)
}

func (p *pusher) manifest(ctx context.Context, d oci.Descriptor, raw []byte) error {
	isRoot := d.Digest == p.root
	if p.current == p.root && (isRoot || p.has(ctx, d.Digest)) {
		return nil
	}
	target := d.Digest.String()
	if isRoot && p.ref.Tag != "" {
		target = p.ref.Tag
	}
	mediaType := d.MediaType
	if mediaType == "" {
		doc, err := oci.ParseDocument(raw, "", p.remote.opts.Limits)
		if err != nil {
			return err
		}
		mediaType = doc.MediaType
	}
	resp, err := p.call(ctx, call{
		method: http.MethodPut, url: p.s.url("/v2/" + p.ref.RepositoryPath() + "/manifests/" + target),
		header: http.Header{"Content-Type": {string(mediaType)}},
		body:   assembly.BytesSource(raw), size: int64(len(raw)),
		what: "push the manifest of " + p.ref.String(),
	})
	switch {
	case err != nil && isRoot:
		return p.refused(ctx, resp, err)
	case err != nil:
		return err
	}
	p.changed = true
	if got := contentDigest(resp.Header); !got.IsZero() && got != d.Digest {
		return oci.ErrDigestMismatch.New(nil, "registry %s stored %s as %s", p.s.host, d.Digest, got).
			WithDo("Do not use the pushed package: the registry modifies content.")
	}
	return nil
}

// blob uploads content in one piece. A failed upload is restarted, because registries
// differ in the state of an interrupted session.
func (p *pusher) blob(ctx context.Context, d oci.Descriptor) error {
	what := "push " + d.Digest.Short() + " to " + p.ref.Name()
	// A registry responds with 500 for a damaged blob, such as an empty file after a full disk. An upload replaces it.
	there, err := p.s.headBlob(ctx, p.ref, d.Digest, pushActions, what)
	if err == nil || !isReplaceable(there, err) {
		return err
	}
	for attempt := 1; ; attempt++ {
		err := p.upload(ctx, d, what)
		if err == nil {
			p.changed = true
			p.s.seeBlob(p.ref, d.Digest)
		}
		if err == nil || attempt >= p.s.opts.Attempts || !errors.Is(err, ErrRegistryUnavailable) || ctx.Err() != nil {
			return err
		}
		if err := p.s.opts.Sleep(ctx, p.s.opts.backoff(attempt)); err != nil {
			return p.s.networkError(ctx, err, what)
		}
	}
}

func (p *pusher) upload(ctx context.Context, d oci.Descriptor, what string) error {
	start := p.s.url("/v2/" + p.ref.RepositoryPath() + "/blobs/uploads/")
	begun, mounted, err := p.begin(ctx, start, d.Digest, what)
	if err != nil || mounted {
		return err
	}
	location, err := start.Parse(begun.Header.Get("Location"))
	if err != nil || begun.Header.Get("Location") == "" {
		return ErrRefused.New(nil, "cannot %s: registry %s returned no upload location", what, p.s.host)
	}
	location = p.s.homeURL(location)
	ctx, cancel := p.s.deadline(ctx, d.Size)
	defer cancel()
	put := call{
		method: http.MethodPut, url: withDigest(location, d.Digest), repository: p.ref.RepositoryPath(), actions: pushActions,
		what:   what,
		header: http.Header{"Content-Type": {"application/octet-stream"}}, size: d.Size,
		body: func(ctx context.Context) (io.ReadCloser, error) { return p.open(ctx, d) },
	}
	resp, err := p.s.once(ctx, put)
	if err != nil {
		return err
	}
	defer drain(resp)
	if !isSuccess(resp.StatusCode) {
		return p.s.statusError(resp, put)
	}
	return nil
}

// begin mounts a blob or starts an upload. A registry that refuses to mount one, such as for want of permissions, is
// not asked again.
func (p *pusher) begin(
	ctx context.Context, start *url.URL, d oci.Digest, what string,
) (resp *http.Response, mounted bool, err error) {
	if from := p.s.blobAt(d); from != "" {
		mount := *start
		mount.RawQuery = url.Values{"mount": {d.String()}, "from": {from}}.Encode()
		resp, err := p.call(ctx, call{method: http.MethodPost, url: &mount, from: from, what: what, replaceable: true})
		if err == nil || ctx.Err() != nil {
			return resp, err == nil && resp.StatusCode == http.StatusCreated, err
		}
		p.s.stopMounting()
	}
	resp, err = p.call(ctx, call{method: http.MethodPost, url: start, what: what})
	return resp, false, err
}

// open verifies content while it is sent. The last bytes of wrong content are never sent,
// so a registry cannot accept it.
func (p *pusher) open(ctx context.Context, d oci.Descriptor) (io.ReadCloser, error) {
	r, err := p.artifact.Open(ctx, d)
	if err != nil {
		return nil, err
	}
	return p.s.progress(readCloser{oci.VerifyReader(r, d), r}, d, true), nil
}

type readCloser struct {
	io.Reader
	io.Closer
}

// call sends a small request and closes the response, which it also returns with the error of its status.
func (p *pusher) call(ctx context.Context, c call) (*http.Response, error) {
	c.repository, c.actions = p.ref.RepositoryPath(), pushActions
	ctx, cancel := p.s.deadline(ctx, c.size)
	defer cancel()
	resp, err := p.s.do(ctx, c)
	if err != nil {
		return nil, err
	}
	defer drain(resp)
	if !isSuccess(resp.StatusCode) {
		return resp, p.s.statusError(resp, c)
	}
	return resp, nil
}

// isSuccess reports whether a status is a success. Registries differ in which one they send after a write.
func isSuccess(status int) bool {
	return status >= http.StatusOK && status < http.StatusMultipleChoices
}

// once sends a request without retries.
func (s *session) once(ctx context.Context, c call) (*http.Response, error) {
	req, err := s.request(ctx, c)
	if err != nil {
		return nil, err
	}
	if req, err = withBody(req); err == nil {
		var resp *http.Response
		if resp, err = s.authorized(req); err == nil {
			return resp, nil
		}
	}
	if errors.Is(err, context.Canceled) && ctx.Err() == nil {
		err = errors.New("the registry closed the upload")
	}
	return nil, s.networkError(ctx, err, c.what)
}

func withDigest(location *url.URL, d oci.Digest) *url.URL {
	u := *location
	query := u.Query()
	query.Set("digest", d.String())
	u.RawQuery = query.Encode()
	return &u
}

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
