package oci

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/failure"
	"github.com/xpkg-dev/xpkg/internal/spelling"
)

// ErrTagNotFound is the failure of a tag that a repository does not have.
var ErrTagNotFound = failure.Register(failure.Code{
	Name: "TagNotFound", Class: failure.NotFound,
	Cause: "The repository has no such tag, or there is no such repository.",
	Fix:   "Check the spelling of the repository and the tag.",
})

// ErrManifestNotFound is the failure of a digest that a repository does not have.
var ErrManifestNotFound = failure.Register(failure.Code{
	Name: "ManifestNotFound", Class: failure.NotFound,
	Cause: "The repository has no content with this digest; it may have been deleted.",
	Fix:   "Resolve the tag again, or copy the content back into the repository.",
})

// Resolve gives the digest that a reference names now. A reference with a digest
// is its own answer: no request is made, and the descriptor has nothing but the
// digest. Otherwise the registry is asked by HEAD, which most registries do not
// count as a pull, and by GET where it does not answer that.
//
// Resolve once for each decision and use the digest from there on: a tag can
// point elsewhere the next moment.
func (r *Remote) Resolve(ctx context.Context, ref Reference) (Descriptor, error) {
	if !ref.Digest.IsZero() {
		return Descriptor{Digest: ref.Digest}, nil
	}
	if ref.Tag == "" {
		return Descriptor{}, ErrInvalidReference.New(nil, "reference %s has neither a tag nor a digest", ref)
	}
	s := r.session(ref.host())
	c := s.manifestCall(ref, http.MethodHead)
	c.what = "resolve " + ref.String()
	ans, err := s.read(ctx, c, r.opts.Limits.Manifest)
	switch {
	case err == nil:
		if d, ok := headDescriptor(ans.Header); ok {
			return d, nil
		}
	case ans.Response == nil, ErrThrottled.Is(err), ErrRegistryUnavailable.Is(err):
		return Descriptor{}, err
	case ans.StatusCode == http.StatusNotFound:
		return Descriptor{}, r.notFound(ctx, ref)
	}
	_, d, err := r.getManifest(ctx, ref)
	return d, err
}

// Exists proves that a registry has the manifest of a reference with a digest, and
// fetches nothing else. It fails with ManifestNotFound where it has not.
func (r *Remote) Exists(ctx context.Context, ref Reference) error {
	if ref.Digest.IsZero() {
		return ErrInvalidReference.New(nil, "reference %s has no digest to look for", ref)
	}
	_, _, err := r.getManifest(ctx, ref)
	return err
}

// headDescriptor reads the answer to a HEAD; false when it does not say enough.
func headDescriptor(h http.Header) (Descriptor, bool) {
	digest, err := ParseDigest(h.Get("Docker-Content-Digest"))
	mediaType := contentType(h)
	if err != nil || !slices.Contains(manifestTypes, mediaType) {
		return Descriptor{}, false
	}
	size, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64)
	if err != nil || size <= 0 {
		return Descriptor{}, false
	}
	return Descriptor{MediaType: mediaType, Digest: digest, Size: size}, true
}

// getManifest gives a manifest or index with its true descriptor. With a digest
// in the reference the bytes are proven to have it.
func (r *Remote) getManifest(ctx context.Context, ref Reference) ([]byte, Descriptor, error) {
	s := r.session(ref.host())
	ans, err := s.read(ctx, s.manifestCall(ref, http.MethodGet), r.opts.Limits.Manifest)
	if ans.Response != nil && ans.StatusCode == http.StatusNotFound {
		return nil, Descriptor{}, r.notFound(ctx, ref)
	}
	if err != nil {
		return nil, Descriptor{}, err
	}
	d := Descriptor{MediaType: contentType(ans.Header), Digest: DigestOf(ans.body), Size: int64(len(ans.body))}
	if !ref.Digest.IsZero() && d.Digest != ref.Digest {
		return nil, Descriptor{}, ErrDigestMismatch.New(nil, "registry %s answered with %s when it was asked for %s", ref.Registry, d.Digest, ref.Digest)
	}
	if claimed := ans.Header.Get("Docker-Content-Digest"); ref.Digest.IsZero() && claimed != "" && claimed != d.Digest.String() {
		return nil, Descriptor{}, ErrDigestMismatch.New(nil, "registry %s sent %s and called it %q", ref.Registry, d.Digest, clip(claimed))
	}
	return ans.body, d, checkManifestType(ref, d.MediaType)
}

// checkManifestType tells manifests of other things from answers that are no
// manifests at all.
func checkManifestType(ref Reference, t MediaType) error {
	switch {
	case slices.Contains(manifestTypes, t):
		return nil
	case isSchema1(t):
		return ErrNotAPackage.New(nil, "%s is of Docker schema 1, which does not protect its content", ref)
	case strings.HasPrefix(string(t), "application/vnd."):
		return ErrNotAPackage.New(nil, "%s is %q, which is not an image", ref, clip(string(t)))
	}
	return ErrUnexpectedMediaType.New(nil, "registry %s answered with %q instead of a manifest", ref.Registry, clip(string(t)))
}

func (s *session) manifestCall(ref Reference, method string) call {
	accept := make([]string, 0, len(manifestTypes))
	for _, t := range manifestTypes {
		accept = append(accept, string(t))
	}
	return call{
		method:     method,
		url:        s.url("/v2/" + ref.path() + "/manifests/" + ref.Identifier()),
		header:     http.Header{"Accept": {strings.Join(accept, ", ")}},
		repository: ref.path(), actions: "pull",
		what: "read the manifest of " + ref.String(),
	}
}

// contentType is the media type of an answer, without parameters.
func contentType(h http.Header) MediaType {
	t, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return MediaType(strings.TrimSpace(t))
}

// notFound says what is not there, and for a tag which ones are.
func (r *Remote) notFound(ctx context.Context, ref Reference) error {
	if !ref.Digest.IsZero() {
		return ErrManifestNotFound.New(nil, "there is no %s in %s", ref.Digest, ref.Name())
	}
	failed := ErrTagNotFound.New(nil, "there is no tag %q in %s", ref.Tag, ref.Name())
	tags, err := r.tagPage(ctx, ref)
	if err != nil {
		if ErrRepositoryNotFound.Is(err) {
			failed.Why = fmt.Errorf("there is no such repository")
		}
		return failed
	}
	if near := nearest(ref.Tag, tags); len(near) > 0 {
		return failed.WithDo("Use a tag that is there, such as %s.", strings.Join(near, ", "))
	}
	return failed
}

// nearest gives the few tags that look most like one, in the order of likeness.
func nearest(tag string, tags []string) []string {
	const most = 3
	type candidate struct {
		tag      string
		distance int
	}
	candidates := make([]candidate, 0, len(tags))
	for _, t := range tags {
		candidates = append(candidates, candidate{t, spelling.Distance(tag, t)})
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(b.tag, a.tag))
	})
	near := make([]string, 0, most)
	for _, c := range candidates[:min(most, len(candidates))] {
		near = append(near, c.tag)
	}
	return near
}
