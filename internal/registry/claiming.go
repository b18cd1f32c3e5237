package registry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/xpkg-dev/xpkg/internal/indexer"
	"github.com/xpkg-dev/xpkg/internal/packagestatus"
	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/internal/registry/cluster"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// clearingTime limits the work after a change, which goes on when the client has disconnected.
const clearingTime = 30 * time.Second

// forwardClaimed forwards a push to the backend. If other servers can write there, too, it claims the name of a new
// repository and the versions that the push writes before.
func (p *push) forwardClaimed(w http.ResponseWriter, r *http.Request, body []byte) {
	tags, err := p.tags(r)
	if err != nil {
		writeRefusal(w, r, err)
		return
	}
	versions := slices.DeleteFunc(slices.Clone(tags), func(tag string) bool { return !packagestatus.IsVersion(tag) })
	isNew := p.isNew && len(tags) > 0
	if p.claims == nil || !isNew && len(versions) == 0 {
		p.images.ServeHTTP(w, r)
		return
	}
	if !p.store(w, r, body) {
		return
	}
	wanted := cluster.Value{Repository: p.api.Repository, Digest: oci.DigestOf(body)}
	permits, err := p.claim(r.Context(), wanted, isNew, versions)
	if err != nil {
		writeRefusal(w, r, err)
		return
	}
	ctx, cancel, err := p.permitted(r.Context(), permits...)
	if err != nil {
		writeRefusal(w, r, err)
		return
	}
	defer cancel()
	answer := &statusRecorder{ResponseWriter: w}
	p.images.ServeHTTP(answer, r.WithContext(ctx))
	switch {
	case answer.status < http.StatusMultipleChoices:
		p.release(r.Context(), true, permits...)
	case answer.status < http.StatusInternalServerError && answer.status != http.StatusRequestTimeout:
		p.release(r.Context(), false, permits...) // The backend has refused the write, and does not make it later.
	}
}

// claim claims the name of the repository if it is new, and versions of it, or nothing.
func (p *push) claim(
	ctx context.Context, wanted cluster.Value, isNew bool, versions []string,
) ([]cluster.Claim, error) {
	var permits []cluster.Claim
	if isNew {
		permit, err := p.claimName(ctx, wanted)
		if err != nil {
			return nil, err
		}
		permits = append(permits, permit)
	}
	for _, tag := range versions {
		wanted.Tag = tag
		permit, err := p.claimVersion(ctx, wanted)
		if err != nil {
			hasTags, _ := p.images.hasTags(ctx, wanted.Repository) // Then the name is published.
			for _, former := range permits {
				p.release(ctx, hasTags && former.Tag == "", former)
			}
			return nil, err
		}
		permits = append(permits, permit)
	}
	return permits, nil
}

// permitted returns a context that ends before the permits do.
func (p *push) permitted(ctx context.Context, permits ...cluster.Claim) (context.Context, context.CancelFunc, error) {
	remaining := clearingTime
	for _, permit := range permits {
		if permit.Permitted {
			remaining = min(remaining, p.claims.Remaining(permit))
		}
	}
	if remaining <= 0 {
		return nil, nil, ErrServer.New(nil, "the server was too slow to push to %s; push again", p.api.Repository)
	}
	ctx, cancel := context.WithTimeout(ctx, remaining)
	return ctx, cancel, nil
}

// store pushes the manifest without a tag, so that every server can publish it once it is claimed. If that fails,
// store writes the response of the backend and returns false.
func (p *push) store(w http.ResponseWriter, r *http.Request, body []byte) bool {
	api := p.api
	api.Reference = oci.DigestOf(body).String()
	untagged := withPath(r, api)
	untagged.URL.RawQuery = ""
	untagged.Body, untagged.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	answer := &manifestAnswer{header: http.Header{}}
	p.images.ServeHTTP(answer, untagged)
	if answer.status < http.StatusMultipleChoices {
		return true
	}
	answer.send(w)
	return false
}

// claimName claims the name of the repository, which has no tags. It fails if one with a similar name has tags or a
// claim. A repository that the client cannot read is no obstacle, as without claims.
func (p *push) claimName(ctx context.Context, wanted cluster.Value) (cluster.Claim, error) {
	isOwn := func(_ context.Context, v cluster.Value) (bool, error) { return v.Repository == wanted.Repository, nil }
	claim, err := p.claims.Acquire(ctx, cluster.Name, access.Fold(wanted.Repository), wanted, isOwn)
	if err != nil {
		return claim, p.publisher.ofCluster(err)
	}
	similar, err := p.similar(ctx)
	var existing []string
	if err == nil {
		existing, err = p.firstWithTags(ctx, append([]string{wanted.Repository}, similar...))
	}
	isPublished := len(existing) > 0
	if !isPublished && p.mayKnow(claim.Repository) {
		existing = []string{claim.Repository}
	}
	if err == nil {
		err = p.policy().CheckNew(wanted.Repository, existing)
	}
	if err != nil {
		p.release(ctx, isPublished, claim)
	}
	return claim, err
}

// claimVersion claims a version. It fails if the version is published with other content, or has to be: then it
// publishes that content, which a server that has failed can have left.
func (p *push) claimVersion(ctx context.Context, wanted cluster.Value) (cluster.Claim, error) {
	ref, err := p.packages.reference(wanted.Repository)
	if err != nil {
		return cluster.Claim{}, err
	}
	var unknown error
	joins := func(ctx context.Context, v cluster.Value) (bool, error) {
		if v.Digest == wanted.Digest || v.Digest.IsZero() {
			return v.Digest == wanted.Digest, nil
		}
		err := p.packages.client.Exists(ctx, ref.WithDigest(v.Digest))
		if isMissing(err) {
			return false, nil
		}
		unknown = ofBackend(err)
		return true, err
	}
	v := version.ParseLenient(wanted.Tag)
	claim, err := p.claims.Acquire(ctx, cluster.Version, wanted.Repository+":"+v.Semver().String(), wanted, joins)
	switch {
	case unknown != nil:
		return claim, unknown
	case err != nil:
		return claim, p.publisher.ofCluster(err)
	}
	published, err := p.packages.published(ctx, wanted.Repository, isSpellingOf(v))
	if err != nil {
		p.release(ctx, false, claim)
		return claim, err
	}
	for tag, d := range published { // All spellings have the same content.
		if d == wanted.Digest {
			return claim, nil
		}
		p.release(ctx, true, claim)
		return claim, p.immutable(tag, d, wanted.Digest)
	}
	switch {
	case !claim.Permitted:
		return claim, ErrServer.New(nil,
			"another server has begun to publish %s:%s and has not ended; push again in a minute", wanted.Repository, wanted.Tag)
	case claim.Digest == wanted.Digest:
		return claim, nil
	}
	if err := p.complete(ctx, claim); err == nil {
		p.release(ctx, true, claim)
	} else {
		p.log.Warn("cannot publish the content that another server has claimed",
			"version", ref.WithTag(wanted.Tag), "digest", claim.Digest, "error", err)
	}
	return claim, p.immutable(wanted.Tag, claim.Digest, wanted.Digest)
}

// isMissing reports whether an error means that content is not in the registry.
func isMissing(err error) bool {
	return indexer.IsAbsent(err) || errors.Is(err, oci.ErrManifestNotFound)
}

// complete publishes the content of a claim under the tag for which it was pushed.
func (p *push) complete(ctx context.Context, claim cluster.Claim) error {
	ref, err := p.packages.reference(claim.Repository)
	if err != nil {
		return err
	}
	content, err := p.packages.client.Artifact(ctx, ref.WithDigest(claim.Digest))
	if err != nil {
		return err
	}
	ctx, cancel, err := p.permitted(ctx, claim)
	if err != nil {
		return err
	}
	defer cancel()
	if _, err := p.packages.client.Push(ctx, ref.WithTag(claim.Tag), content); err != nil {
		return err
	}
	p.changed(claim.Repository)
	return nil
}

// release deletes claims of versions and names that are published, and otherwise those that this call has made
// without a write. One that remains is harmless: the next push of its version or name deletes it.
func (p *push) release(ctx context.Context, isPublished bool, claims ...cluster.Claim) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearingTime)
	defer cancel()
	for _, claim := range claims {
		if !isPublished && !claim.Fresh {
			continue
		}
		if err := p.claims.Release(ctx, claim); err != nil {
			p.log.Debug("a claim remains in the cluster", "repository", claim.Repository, "tag", claim.Tag, "error", err)
		}
	}
}
