package registry

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/internal/packagestatus"
	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/internal/registry/claim"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// forwardAgreed forwards a push to the backend once the servers in front of it agree that its repository, if it is new, gets its name, and that the
// versions that it writes have its content.
func (p *push) forwardAgreed(w http.ResponseWriter, r *http.Request, body []byte) {
	tags, err := p.tags(r)
	if err != nil {
		writeRefusal(w, r, err)
		return
	}
	versions := slices.DeleteFunc(slices.Clone(tags), func(tag string) bool { return !packagestatus.IsVersion(tag) })
	isNew := p.isNew && len(tags) > 0
	if (isNew || len(versions) > 0) && !p.store(w, r, body) {
		return
	}
	content := oci.DigestOf(body)
	if isNew {
		if err := p.agreeOnName(r.Context(), slices.Concat(versions, tags)[0], content); err != nil {
			writeRefusal(w, r, err)
			return
		}
	}
	for _, tag := range versions {
		if err := p.agree(r.Context(), tag, content); err != nil {
			writeRefusal(w, r, err)
			return
		}
	}
	answer := &statusRecorder{ResponseWriter: w}
	p.images.ServeHTTP(answer, r)
	if answer.status >= http.StatusMultipleChoices {
		return
	}
	for _, tag := range versions {
		p.clear(r.Context(), tag)
	}
	if isNew {
		p.clearName(r.Context())
	}
}

// version returns the version of a tag of the repository.
func (p *push) version(tag string) (claim.Version, error) {
	ref, err := p.packages.reference(p.api.repository)
	v := version.Parse(tag)
	return claim.Version{
		Client: p.packages.client, Ref: ref.WithTag(tag),
		Published: func(ctx context.Context) (oci.Digest, error) {
			published, err := p.packages.published(ctx, p.api.repository, isSpellingOf(v))
			for _, d := range published {
				return d, err // All spellings have the same content.
			}
			return oci.Digest{}, err
		},
	}, err
}

// name returns the name of the repository, for its first tag.
func (p *push) name(tag string) (claim.Name, error) {
	ref, err := p.packages.reference(p.api.repository)
	return claim.Name{
		Client: p.packages.client, Ref: ref.WithTag(tag), Key: p.nameKey(),
		Similar: func(ctx context.Context) ([]oci.Reference, error) {
			similar, err := p.similar(ctx)
			refs := make([]oci.Reference, len(similar))
			for i, other := range similar {
				refs[i] = ref
				refs[i].Repository = other
			}
			return refs, err
		},
		Published: func(ctx context.Context) (string, error) {
			similar, err := p.similar(ctx)
			if err != nil {
				return "", err
			}
			existing, err := p.firstWithTags(ctx, append([]string{p.api.repository}, similar...))
			return strings.Join(existing, ""), err
		},
	}, err
}

func (p *push) nameKey() string { return claim.NameKey(access.Fold(p.api.repository)) }

// agreeOnName fails unless the repository gets its name, and not one with a similar name. The first content of another server that has failed is
// published for it.
func (p *push) agreeOnName(ctx context.Context, tag string, content oci.Digest) error {
	name, err := p.name(tag)
	if err != nil {
		return err
	}
	first, err := name.Decide(ctx, content)
	if err != nil || first.Repository == p.api.repository {
		return ofBackend(err)
	}
	if err := p.completeFirst(ctx, first); err != nil {
		p.log.Warn("cannot publish the first content of the repository on which the servers agreed", "repository", first.Repository, "tag", first.Tag, "error", err)
	} else {
		p.clearName(ctx)
	}
	return p.policy().CheckNew(p.api.repository, []string{first.Repository})
}

// completeFirst publishes the first content of a repository, unless it has tags.
func (p *push) completeFirst(ctx context.Context, first claim.First) error {
	if exists, err := p.images.hasTags(ctx, first.Repository); err != nil || exists {
		return err
	}
	if !packagestatus.IsVersion(first.Tag) {
		return ErrServer.New(nil, "the tag can move, so only the server that received it can push it")
	}
	other := &push{Server: p.Server, api: apiRequest{endpoint: manifestEndpoint, repository: first.Repository}, subject: p.subject}
	v, err := other.version(first.Tag)
	if err != nil {
		return err
	}
	decided, err := v.Decide(ctx, first.Content)
	if err != nil {
		return err
	}
	return other.complete(ctx, v, decided)
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

// agree fails unless a version gets the wanted content. Content of another server that has failed is published for it.
func (p *push) agree(ctx context.Context, tag string, wanted oci.Digest) error {
	v, err := p.version(tag)
	if err != nil {
		return err
	}
	decided, err := v.Decide(ctx, wanted)
	if err != nil || decided == wanted {
		return ofBackend(err)
	}
	if err := p.complete(ctx, v, decided); err != nil {
		p.log.Warn("cannot publish the content on which the servers agreed", "version", v.Ref, "digest", decided, "error", err)
	}
	return p.immutable(tag, decided, wanted)
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
	p.clear(ctx, v.Ref.Tag)
	return nil
}

// clearingTime limits the deletion of claims, which goes on when the client has disconnected.
const clearingTime = 30 * time.Second

// clear deletes the claims of a version that is published, and those that other servers have left in the repository. A registry that does not delete
// keeps them.
func (p *push) clear(ctx context.Context, tag string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearingTime)
	defer cancel()
	v, err := p.version(tag)
	if err == nil {
		err = v.Clear(ctx, p.nameKey())
	}
	if err != nil {
		p.log.Debug("the claims of a version remain in the registry", "repository", p.api.repository, "tag", tag, "error", err)
	}
}

// clearName deletes the claims of the name of the repository and of similar ones, of which one has tags.
func (p *push) clearName(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearingTime)
	defer cancel()
	name, err := p.name("")
	if err == nil {
		err = name.Clear(ctx)
	}
	if err != nil {
		p.log.Debug("the claims of a name remain in the registry", "repository", p.api.repository, "error", err)
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
