package remote

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/spelling"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/text"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// ErrTagNotFound is the code for a tag that does not exist in the repository.
var ErrTagNotFound = errcode.Code{
	Name: "TagNotFound", Class: errcode.NotFound,
	Cause: "The tag or the repository does not exist.",
	Fix:   "Check the spelling of the repository and the tag.",
}

// manifestTypes are the accepted media types of a manifest, in order of preference.
var manifestTypes = []oci.MediaType{
	oci.MediaTypeOCIManifest, oci.MediaTypeDockerManifest, oci.MediaTypeOCIIndex, oci.MediaTypeDockerList,
}

// Resolve returns the current digest of a reference. For a reference with a digest it
// makes no request, and the descriptor has only the digest. Otherwise it sends a HEAD,
// which most registries do not count as a pull, and a GET if the HEAD fails or is
// incomplete.
//
// Resolve once for each decision and use the digest from then on: a tag can change at any
// time.
func (r *Client) Resolve(ctx context.Context, ref oci.Reference) (oci.Descriptor, error) {
	if !ref.Digest.IsZero() {
		return oci.Descriptor{Digest: ref.Digest}, nil
	}
	if ref.Tag == "" {
		return oci.Descriptor{}, oci.ErrInvalidReference.New(nil, "reference %s has neither a tag nor a digest", ref)
	}
	s := r.session(ref.Host())
	c := s.manifestCall(ref, http.MethodHead)
	c.what, c.replaceable = "resolve "+ref.String(), true
	ans, err := s.read(ctx, c, r.opts.Limits.Manifest)
	if err == nil {
		if d, ok := headDescriptor(ans.Header); ok {
			return d, nil
		}
	} else if !isReplaceable(ans, err) {
		return oci.Descriptor{}, err
	}
	_, d, err := r.getManifest(ctx, ref)
	return d, err
}

// isReplaceable reports whether another request can succeed where a HEAD failed: several registries and proxies fail
// HEAD with any status, or close the connection.
func isReplaceable(ans answer, err error) bool {
	return !errors.Is(err, ErrThrottled) && (ans.Response != nil || errors.Is(err, ErrRegistryUnavailable))
}

// Exists checks that a registry has the manifest of a reference with a digest, without
// fetching other content. It fails with ErrManifestNotFound otherwise.
func (r *Client) Exists(ctx context.Context, ref oci.Reference) error {
	if ref.Digest.IsZero() {
		return oci.ErrInvalidReference.New(nil, "reference %s has no digest", ref)
	}
	_, _, err := r.getManifest(ctx, ref)
	return err
}

// headDescriptor parses the response to a HEAD. It returns false if the response is
// incomplete.
func headDescriptor(h http.Header) (oci.Descriptor, bool) {
	digest, mediaType := contentDigest(h), contentType(h)
	if digest.IsZero() || !slices.Contains(manifestTypes, mediaType) {
		return oci.Descriptor{}, false
	}
	size, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64)
	if err != nil || size <= 0 {
		return oci.Descriptor{}, false
	}
	return oci.Descriptor{MediaType: mediaType, Digest: digest, Size: size}, true
}

// getManifest returns a manifest or index with its computed descriptor. If the reference
// has a digest, the bytes are verified against it.
func (r *Client) getManifest(ctx context.Context, ref oci.Reference) ([]byte, oci.Descriptor, error) {
	s := r.session(ref.Host())
	ans, err := s.read(ctx, s.manifestCall(ref, http.MethodGet), r.opts.Limits.Manifest)
	if ans.Response != nil && ans.StatusCode == http.StatusNotFound {
		return nil, oci.Descriptor{}, r.notFound(ctx, ref)
	}
	if err != nil {
		return nil, oci.Descriptor{}, err
	}
	d := oci.Descriptor{MediaType: r.manifestType(ans), Digest: oci.DigestOf(ans.body), Size: int64(len(ans.body))}
	if !ref.Digest.IsZero() && d.Digest != ref.Digest {
		return nil, oci.Descriptor{},
			oci.ErrDigestMismatch.New(nil, "registry %s returned %s instead of %s", ref.Registry, d.Digest, ref.Digest)
	}
	if claimed := contentDigest(ans.Header); ref.Digest.IsZero() && !claimed.IsZero() && claimed != d.Digest {
		return nil, oci.Descriptor{},
			oci.ErrDigestMismatch.New(nil, "registry %s sent %s as %s", ref.Registry, d.Digest, claimed)
	}
	return ans.body, d, checkManifestType(ref, d.MediaType)
}

// checkManifestType returns an error for unsupported manifests and for responses that are
// not manifests.
func checkManifestType(ref oci.Reference, t oci.MediaType) error {
	switch {
	case slices.Contains(manifestTypes, t):
		return nil
	case oci.IsDockerSchema1(t):
		return oci.ErrNotAPackage.New(nil, "%s is of Docker schema 1, which does not verify its content", ref)
	case strings.HasPrefix(string(t), "application/vnd."):
		return oci.ErrNotAPackage.New(nil, "%s is %q, which is not an image", ref, text.Clip(string(t)))
	}
	return oci.ErrUnexpectedMediaType.New(
		nil, "registry %s responded with %q instead of a manifest", ref.Registry, text.Clip(string(t)),
	)
}

func (s *session) manifestCall(ref oci.Reference, method string) call {
	accept := make([]string, 0, len(manifestTypes))
	for _, t := range manifestTypes {
		accept = append(accept, string(t))
	}
	return call{
		method:     method,
		url:        s.url("/v2/" + ref.RepositoryPath() + "/manifests/" + ref.Identifier()),
		header:     http.Header{"Accept": {strings.Join(accept, ", ")}},
		repository: ref.RepositoryPath(), actions: pullActions,
		what: "read the manifest of " + ref.String(),
	}
}

// manifestType returns the media type of a manifest in a response: the declared one, or that of the document if the
// registry declares none, a general type such as application/json, or the equivalent type of another standard.
func (r *Client) manifestType(ans answer) oci.MediaType {
	declared := contentType(ans.Header)
	if _, err := oci.ParseDocument(ans.body, declared, r.opts.Limits); declared != "" && err == nil {
		return declared
	}
	doc, err := oci.ParseDocument(ans.body, "", r.opts.Limits)
	isGeneral := !strings.HasPrefix(string(declared), "application/vnd.")
	if err == nil && (isGeneral || declared.IsIndex() && doc.IsIndex() || declared.IsImage() && !doc.IsIndex()) {
		return doc.MediaType
	}
	return declared
}

// contentType returns the media type of a response in lower case, without parameters.
func contentType(h http.Header) oci.MediaType {
	t, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return oci.MediaType(strings.ToLower(strings.TrimSpace(t)))
}

// contentDigest returns the digest that a response claims, or zero if it claims none, or one that cannot be compared.
func contentDigest(h http.Header) oci.Digest {
	d, err := oci.ParseDigest(strings.TrimSpace(h.Get("Docker-Content-Digest")))
	if err != nil {
		return oci.Digest{}
	}
	return d
}

// notFound returns an error that names the missing content: the repository if it has no tags, and for a tag similar
// tags. The error of a repository wraps that of the tag.
func (r *Client) notFound(ctx context.Context, ref oci.Reference) error {
	if !ref.Digest.IsZero() {
		return oci.ErrManifestNotFound.New(nil, "%s does not exist in %s", ref.Digest, ref.Name())
	}
	failed := ErrTagNotFound.New(nil, "the tag %q does not exist in %s", ref.Tag, ref.Name())
	tags, err := r.tagPage(ctx, ref)
	if errors.Is(err, ErrRepositoryNotFound) || err == nil && len(tags) == 0 {
		// Many registries return an empty list for a missing repository.
		return ErrRepositoryNotFound.New(
			ErrTagNotFound.New(nil, "the tag %q was not found", ref.Tag), "the repository %s does not exist or has no tags",
			ref.Name(),
		)
	}
	if slices.Contains(tags, ref.Tag) {
		return failed.WithDo(
			"The registry lists the tag and does not serve its content, which is deleted or damaged: see the log of the registry, and push the version again.",
		)
	}
	if near := nearest(ref.Tag, tags); err == nil && len(near) > 0 {
		return failed.WithDo("Use an existing tag, such as %s.", strings.Join(near, ", "))
	}
	return failed
}

// nearest returns a few versions, the newest first: those with a similar spelling, and then the newest ones. Other
// tags, such as those of statuses and signatures, are none that a user selects, except for latest.
func nearest(tag string, tags []string) []string {
	const most, similar = 3, 2 // similar is a number of typing errors.
	type candidate struct {
		tag      string
		distance int
	}
	candidates := make([]candidate, 0, len(tags))
	_, _, wantsArtifact := oci.ParseArtifactTag(tag)
	for _, t := range tags {
		if v := version.Parse(t); wantsArtifact || v.Usable() || t == "latest" {
			candidates = append(candidates, candidate{t, spelling.Distance(tag, t)})
		}
	}
	newest := func(a, b string) int {
		left, right := version.Parse(a), version.Parse(b)
		return right.Compare(&left)
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		if a.distance > similar && b.distance > similar {
			return cmp.Or(newest(a.tag, b.tag), cmp.Compare(b.tag, a.tag))
		}
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(b.tag, a.tag))
	})
	near := make([]string, 0, most)
	for _, c := range candidates[:min(most, len(candidates))] {
		near = append(near, c.tag)
	}
	slices.SortStableFunc(near, newest)
	return near
}
