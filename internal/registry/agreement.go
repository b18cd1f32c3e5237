package registry

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"github.com/xpkg-dev/xpkg/internal/registry/claim"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// forwardAgreed forwards a push to the backend once the servers in front of it agree that the versions that it writes have its content.
func (p *push) forwardAgreed(w http.ResponseWriter, r *http.Request, body []byte) {
	versions, err := p.versionsIn(r)
	if err != nil {
		writeRefusal(w, r, err)
		return
	}
	if len(versions) > 0 && !p.store(w, r, body) {
		return
	}
	for _, v := range versions {
		if err := p.agree(r.Context(), v, oci.DigestOf(body)); err != nil {
			writeRefusal(w, r, err)
			return
		}
	}
	answer := &statusRecorder{ResponseWriter: w}
	p.images.ServeHTTP(answer, r)
	if answer.status < http.StatusMultipleChoices {
		for _, v := range versions {
			p.clear(r.Context(), v)
		}
	}
}

// versionsIn returns the versions that a push writes.
func (p *push) versionsIn(r *http.Request) ([]claim.Version, error) {
	tags, err := p.tags(r)
	if err != nil {
		return nil, err
	}
	ref, err := p.packages.reference(p.api.repository)
	if err != nil {
		return nil, err
	}
	var found []claim.Version
	for _, tag := range tags {
		v := version.Parse(tag)
		if !v.Usable() {
			continue
		}
		found = append(found, claim.Version{
			Client: p.packages.client, Ref: ref.WithTag(tag),
			Published: func(ctx context.Context) (oci.Digest, error) {
				published, err := p.packages.published(ctx, p.api.repository, isSpellingOf(v))
				for _, d := range published {
					return d, err // All spellings have the same content.
				}
				return oci.Digest{}, err
			},
		})
	}
	return found, nil
}

// store pushes the manifest without a tag, so that every server can publish it once it is decided. If that fails, store writes the response of the
// backend and returns false.
func (p *push) store(w http.ResponseWriter, r *http.Request, body []byte) bool {
	api := p.api
	api.reference = oci.DigestOf(body).String()
	untagged := withPath(r, api)
	untagged.URL.RawQuery = ""
	untagged.Body, untagged.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	answer := &failureRecorder{ResponseWriter: w, header: http.Header{}}
	p.images.ServeHTTP(answer, untagged)
	return !answer.failed
}

// agree fails unless the version gets the wanted content. Content of another server that has failed is published for it.
func (p *push) agree(ctx context.Context, v claim.Version, wanted oci.Digest) error {
	decided, err := v.Decide(ctx, wanted)
	if err != nil || decided == wanted {
		return err
	}
	if err := p.complete(ctx, v, decided); err != nil {
		p.log.Warn("cannot publish the content on which the servers agreed", "version", v.Ref, "digest", decided, "error", err)
	}
	return p.immutable(v.Ref.Tag, decided, wanted)
}

// complete publishes the content on which the servers agreed, unless it is published.
func (p *push) complete(ctx context.Context, v claim.Version, decided oci.Digest) error {
	published, err := v.Published(ctx)
	if err != nil {
		return err
	}
	if published.IsZero() {
		tag, err := v.TagOf(ctx, decided)
		if err != nil {
			return err
		}
		content, err := p.packages.client.Artifact(ctx, v.Ref.WithDigest(decided))
		if err != nil {
			return err
		}
		if _, err := p.packages.client.Push(ctx, v.Ref.WithTag(tag), content); err != nil {
			return err
		}
		p.changed(p.api.repository)
	}
	p.clear(ctx, v)
	return nil
}

// clear deletes the claims of a version that is published. A registry that does not delete keeps them.
func (p *push) clear(ctx context.Context, v claim.Version) {
	if err := v.Clear(ctx); err != nil {
		p.log.Debug("the claims of a version remain in the registry", "version", v.Ref, "error", err)
	}
}

// failureRecorder writes a response if it reports a failure.
type failureRecorder struct {
	http.ResponseWriter
	header          http.Header
	started, failed bool
}

// Header implements [http.ResponseWriter].
func (f *failureRecorder) Header() http.Header {
	if f.failed {
		return f.ResponseWriter.Header()
	}
	return f.header
}

// WriteHeader implements [http.ResponseWriter].
func (f *failureRecorder) WriteHeader(status int) {
	if f.started {
		return
	}
	f.started, f.failed = true, status >= http.StatusMultipleChoices
	if f.failed {
		header := f.ResponseWriter.Header()
		for name, values := range f.header {
			header[name] = values
		}
		f.ResponseWriter.WriteHeader(status)
	}
}

// Write implements [http.ResponseWriter].
func (f *failureRecorder) Write(p []byte) (int, error) {
	f.WriteHeader(http.StatusOK)
	if f.failed {
		return f.ResponseWriter.Write(p)
	}
	return len(p), nil
}
