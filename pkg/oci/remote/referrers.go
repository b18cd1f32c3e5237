package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/assembly"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/text"
)

const (
	// maxReferrers limits the artifacts that refer to one manifest, and maxReferrerPages the responses that list them.
	maxReferrers     = 10000
	maxReferrerPages = 100
)

// Referrers returns the descriptors of the artifacts whose subject is the manifest with the digest of a reference,
// ordered by digest. An empty artifactType returns artifacts of all types. Without the referrers API of a registry, it
// reads the index under the tag that the OCI distribution specification prescribes ("Referrers Tag Schema").
//
// The descriptors are claims: a reader of an artifact verifies that its subject is the manifest.
func (r *Client) Referrers(ctx context.Context, ref oci.Reference, artifactType string) ([]oci.Descriptor, error) {
	found, err := r.referrers(ctx, ref, false)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(d oci.Descriptor) bool {
		return artifactType != "" && d.ArtifactType != artifactType
	})
	return inOrder(found), nil
}

// CertainReferrers is like [Client.Referrers] for all types. It fails if the registry denies the list, so that an empty
// list proves that there are none.
func (r *Client) CertainReferrers(ctx context.Context, ref oci.Reference) ([]oci.Descriptor, error) {
	found, err := r.referrers(ctx, ref, true)
	return inOrder(found), err
}

// inOrder returns descriptors ordered by digest, without duplicates.
func inOrder(found []oci.Descriptor) []oci.Descriptor {
	slices.SortStableFunc(found, func(a, b oci.Descriptor) int { return a.Digest.Compare(b.Digest) })
	return slices.CompactFunc(found, func(a, b oci.Descriptor) bool { return a.Digest == b.Digest })
}

func (r *Client) referrers(ctx context.Context, ref oci.Reference, denialFails bool) ([]oci.Descriptor, error) {
	if ref.Digest.IsZero() {
		return nil, oci.ErrInvalidReference.New(nil, "reference %s has no digest", ref)
	}
	found, provided, err := r.listReferrers(ctx, ref, denialFails)
	if err == nil && !provided {
		return r.taggedReferrers(ctx, ref)
	}
	return found, err
}

// listReferrers reads the referrers API. It returns false if the registry does not provide it.
func (r *Client) listReferrers(
	ctx context.Context, ref oci.Reference, denialFails bool,
) (found []oci.Descriptor, provided bool, err error) {
	s := r.session(ref.Host())
	next, pages := s.url("/v2/"+ref.RepositoryPath()+"/referrers/"+ref.Digest.String()), 0
	for next != nil {
		if pages++; pages > maxReferrerPages || len(found) > maxReferrers {
			return nil, true,
				ErrTagList.New(nil, "the list of the referrers of %s does not end after %d entries", ref, len(found))
		}
		ans, err := s.read(ctx, call{
			method: http.MethodGet, url: next, repository: ref.RepositoryPath(), actions: pullActions,
			header: http.Header{"Accept": {string(oci.MediaTypeOCIIndex)}},
			what:   "list the referrers of " + ref.String(),
		}, r.opts.Limits.Manifest)
		switch {
		case denialFails && ans.Response != nil && isDenial(ans.StatusCode):
			return nil, true, err
		case ans.Response != nil && isWithoutReferrers(ans.StatusCode):
			return nil, false, nil
		case err != nil:
			return nil, true, err
		case !isReferrersList(ans):
			return nil, false, nil
		}
		page, err := parseReferrers(ref, ans.body)
		if err != nil {
			return nil, true, err
		}
		found = append(found, page...)
		if next, err = s.nextPage(next, ans.Header); err != nil {
			return nil, true, err
		}
	}
	return found, true, nil
}

func isDenial(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

// isWithoutReferrers reports whether a status is the response of a registry without the referrers API, which some
// registries and proxies reject with other statuses than 404. The index under the tag is readable if the repository is.
func isWithoutReferrers(status int) bool {
	return status >= http.StatusBadRequest && status < http.StatusInternalServerError &&
		status != http.StatusRequestTimeout && status != http.StatusTooManyRequests || status == http.StatusNotImplemented
}

// isReferrersList reports whether a response is an index, also if the registry declares a general type or none.
func isReferrersList(ans answer) bool {
	var index struct {
		Manifests *[]json.RawMessage `json:"manifests"`
	}
	switch contentType(ans.Header) {
	case oci.MediaTypeOCIIndex:
		return true
	case "", "application/json", "text/plain", "application/octet-stream":
		return json.Unmarshal(ans.body, &index) == nil && index.Manifests != nil
	}
	return false
}

// taggedReferrers reads the index under the fallback tag.
func (r *Client) taggedReferrers(ctx context.Context, ref oci.Reference) ([]oci.Descriptor, error) {
	s := r.session(ref.Host())
	tagged := ref.WithTag(fallbackTag(ref.Digest))
	ans, err := s.read(ctx, s.manifestCall(tagged, http.MethodGet), r.opts.Limits.Manifest)
	if ans.Response != nil && ans.StatusCode == http.StatusNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseReferrers(ref, ans.body)
}

// fallbackTag returns the tag of the index of referrers.
func fallbackTag(d oci.Digest) string { return strings.Replace(d.String(), ":", "-", 1) }

// ParseFallbackTag returns the digest of the manifest whose referrers are listed in the index under a tag, in a
// registry without the referrers API, and false for any other tag.
func ParseFallbackTag(tag string) (oci.Digest, bool) {
	d, err := oci.ParseDigest(strings.Replace(tag, "-", ":", 1))
	return d, err == nil && fallbackTag(d) == tag
}

// parseReferrers returns the entries of an index. It omits entries that this package cannot read, such as digests of
// other algorithms, because any client can add them.
func parseReferrers(ref oci.Reference, body []byte) ([]oci.Descriptor, error) {
	var index struct {
		Manifests []json.RawMessage `json:"manifests"`
	}
	if err := json.Unmarshal(body, &index); err != nil || len(index.Manifests) > maxReferrers {
		return nil, oci.ErrInvalidManifest.New(
			err, "the list of the referrers of %s is malformed, or has more than %d entries", ref, maxReferrers,
		)
	}
	var found []oci.Descriptor
	for _, raw := range index.Manifests {
		var d oci.Descriptor
		if json.Unmarshal(raw, &d) == nil && !d.Digest.IsZero() {
			found = append(found, d)
		}
	}
	return found, nil
}

// Attach pushes an artifact that refers to a manifest of the same repository with its subject. If the registry does
// not provide the referrers API, Attach adds the artifact to the index under the fallback tag.
func (r *Client) Attach(ctx context.Context, ref oci.Reference, a oci.Artifact) (oci.Digest, error) {
	raw, doc, err := oci.ReadDocument(ctx, a, a.Root(), r.opts.Limits)
	if err != nil {
		return oci.Digest{}, err
	}
	if doc.Subject == nil {
		return oci.Digest{}, oci.ErrInvalidManifest.New(nil, "%s has no subject", a.Root().Digest.Short())
	}
	repository := ref.WithTag("")
	digest, err := r.Push(ctx, repository, a)
	if err != nil {
		return digest, err
	}
	subject := repository.WithDigest(doc.Subject.Digest)
	if found, provided, err := r.listReferrers(ctx, subject, false); err != nil ||
		provided && slices.ContainsFunc(found, func(d oci.Descriptor) bool { return d.Digest == digest }) {
		return digest, err
	}
	entry := oci.Descriptor{
		MediaType: a.Root().MediaType, ArtifactType: doc.ArtifactType, Digest: digest, Size: int64(len(raw)),
		Annotations: maps.Clone(doc.Annotations),
	}
	if entry.ArtifactType == "" && doc.Config != nil {
		entry.ArtifactType = string(doc.Config.MediaType)
	}
	return digest, r.tagReferrer(ctx, subject, entry)
}

// tagReferrer adds an entry to the index under the fallback tag, and repeats that if another client changes the index
// at the same time.
func (r *Client) tagReferrer(ctx context.Context, subject oci.Reference, entry oci.Descriptor) error {
	tagged := subject.WithTag(fallbackTag(subject.Digest))
	for range r.opts.Attempts {
		found, err := r.taggedReferrers(ctx, subject)
		if err != nil && !errors.Is(err, ErrRepositoryNotFound) {
			return err
		}
		if slices.ContainsFunc(found, func(d oci.Descriptor) bool { return d.Digest == entry.Digest }) {
			return nil
		}
		raw, err := json.Marshal(oci.Document{
			SchemaVersion: 2, MediaType: oci.MediaTypeOCIIndex, Manifests: append(found, entry),
		})
		if err != nil {
			return err
		}
		s := r.session(subject.Host())
		p := pusher{remote: r, s: s, ref: tagged}
		_, err = p.call(ctx, call{
			method: http.MethodPut, url: s.url("/v2/" + tagged.RepositoryPath() + "/manifests/" + tagged.Tag),
			header: http.Header{"Content-Type": {string(oci.MediaTypeOCIIndex)}},
			body:   assembly.BytesSource(raw), size: int64(len(raw)),
			what: "push the referrers of " + subject.String(),
		})
		if err != nil {
			return err
		}
	}
	found, err := r.taggedReferrers(ctx, subject)
	if err == nil && !slices.ContainsFunc(found, func(d oci.Descriptor) bool { return d.Digest == entry.Digest }) {
		err = ErrRefused.New(
			nil, "registry %s loses entries of the referrers of %s, at tag %q", subject.Host(), subject.Digest.Short(),
			text.Clip(tagged.Tag),
		)
	}
	return err
}

// Attached is an artifact that belongs to a manifest, such as a signature: by its subject, or by its tag.
type Attached struct {
	// Subject is the manifest to which the artifact belongs.
	Subject oci.Digest
	// Ref is the artifact, with the tag by which it belongs to the subject if it has no subject of its own.
	Ref oci.Reference
	// Type is the artifact type. It can be empty.
	Type string
}

// String returns the tag or the type of the artifact, and the digests.
func (a Attached) String() string {
	switch {
	case a.Ref.Tag != "":
		return fmt.Sprintf("%s (%s)", a.Ref.Tag, a.Ref.Digest.Short())
	case a.Type != "":
		return fmt.Sprintf("%s of %s (%s)", a.Type, a.Subject.Short(), a.Ref.Digest.Short())
	}
	return fmt.Sprintf("a referrer of %s (%s)", a.Subject.Short(), a.Ref.Digest.Short())
}

// attachedSuffixes are the suffixes of the tags of cosign and of statuses, for a client that may not list tags.
var attachedSuffixes = []string{".sig", ".att", ".sbom", ".status"}

// FindAttached returns the artifacts that belong to content of a registry, and those that belong to these, each after
// its subject and in a fixed order. The manifests of an index are part of it, except those that a partial artifact
// omits. It fails if the registry denies the list of referrers, so that nothing is missing in the result.
func (r *Client) FindAttached(ctx context.Context, from oci.Reference, content oci.Artifact) ([]Attached, error) {
	subjects, err := manifestsOf(ctx, content, content.Root(), r.opts.Limits)
	if err != nil {
		return nil, err
	}
	tags, err := r.ExistingTags(ctx, from)
	isListed := err == nil
	if err != nil && !isNoList(err) {
		return nil, err
	}
	var out []Attached
	for i := 0; i < len(subjects); i++ {
		found, err := r.CertainReferrers(ctx, from.WithTag("").WithDigest(subjects[i]))
		if err != nil {
			return nil, err
		}
		var attached []Attached
		for _, d := range found {
			attached = append(attached, Attached{subjects[i], from.WithTag("").WithDigest(d.Digest), d.ArtifactType})
		}
		tagged, err := r.taggedArtifacts(ctx, from, subjects[i], tags, isListed)
		if err != nil {
			return nil, err
		}
		for _, a := range append(attached, tagged...) {
			if len(subjects) > maxReferrers {
				return nil, oci.ErrManifestTooLarge.New(nil, "more than %d artifacts belong to %s", maxReferrers, from)
			}
			out = append(out, a)
			if !slices.Contains(subjects, a.Ref.Digest) {
				subjects = append(subjects, a.Ref.Digest)
			}
		}
	}
	return out, nil
}

// isNoList reports whether a registry does not list the tags of a repository that a client can read nevertheless.
func isNoList(err error) bool {
	return errors.Is(err, ErrUnauthorized) || errors.Is(err, ErrRefused)
}

// taggedArtifacts returns the artifacts that belong to a subject by their tags, among the tags of the repository or,
// if these are unknown, those of cosign.
func (r *Client) taggedArtifacts(
	ctx context.Context, from oci.Reference, subject oci.Digest, tags []string, isListed bool,
) ([]Attached, error) {
	if !isListed {
		for _, suffix := range attachedSuffixes {
			tags = append(tags, oci.ArtifactTag(subject, suffix))
		}
	}
	var out []Attached
	for _, tag := range tags {
		if of, suffix, ok := oci.ParseArtifactTag(tag); !ok || of != subject || !strings.HasPrefix(suffix, ".") {
			continue
		}
		d, err := r.Resolve(ctx, from.WithTag(tag))
		if errors.Is(err, ErrTagNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, Attached{Subject: subject, Ref: from.WithTag(tag).WithDigest(d.Digest)})
	}
	return out, nil
}

// manifestsOf returns the digests of a manifest, or of an index and its manifests.
func manifestsOf(ctx context.Context, content oci.Artifact, d oci.Descriptor, limits oci.Limits) ([]oci.Digest, error) {
	out := []oci.Digest{d.Digest}
	if !d.MediaType.IsIndex() {
		return out, nil
	}
	_, doc, err := oci.ReadDocument(ctx, content, d, limits)
	if err != nil {
		return nil, err
	}
	for _, child := range doc.Manifests {
		if p, ok := content.(oci.Partial); ok && p.Omits(child) {
			continue
		}
		below, err := manifestsOf(ctx, content, child, limits)
		if err != nil {
			return nil, err
		}
		out = append(out, below...)
	}
	return out, nil
}

// OpenAttached returns an artifact that belongs to a subject. It returns nil for one that does not refer to the subject
// although the registry lists it: without the referrers API, any client can write the list.
func (r *Client) OpenAttached(ctx context.Context, a Attached) (oci.Artifact, error) {
	artifact, err := r.Artifact(ctx, a.Ref.WithTag("").WithDigest(a.Ref.Digest))
	if err != nil || a.Ref.Tag != "" {
		return artifact, err
	}
	_, doc, err := oci.ReadDocument(ctx, artifact, artifact.Root(), r.opts.Limits)
	if err != nil || doc.Subject == nil || doc.Subject.Digest != a.Subject {
		return nil, err
	}
	return artifact, nil
}

// CopyAttached copies an artifact to the repository of a target, under its tag if it belongs to its subject by the
// tag. It returns false for an artifact that does not exist, or does not refer to the subject; see
// [Client.OpenAttached].
func (r *Client) CopyAttached(ctx context.Context, a Attached, to oci.Reference) (copied bool, err error) {
	artifact, err := r.OpenAttached(ctx, a)
	switch {
	case errors.Is(err, oci.ErrManifestNotFound):
		return false, nil // It was deleted since the list, or the list is wrong.
	case err != nil || artifact == nil:
		return false, err
	case a.Ref.Tag != "":
		err = r.PushAttached(ctx, to.WithTag(a.Ref.Tag), artifact)
	default:
		_, err = r.Attach(ctx, to.WithTag(""), artifact)
	}
	return err == nil, err
}
