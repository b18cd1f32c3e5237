package registry

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/internal/packagestatus"
	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/internal/registry/limit"
	"github.com/xpkg-dev/xpkg/internal/registry/protocol"
	"github.com/xpkg-dev/xpkg/internal/registry/storage"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

const (
	// manifestTime is the time in which a client must have sent a manifest.
	manifestTime = time.Minute
	// mostQueryTags is the maximum number of tags in the query of a push by digest.
	mostQueryTags = 20
)

// push is a change of a repository by a client.
type push struct {
	*Server
	api     protocol.Request
	subject access.Subject
	// isNew means that the repository has no tags.
	isNew bool
	// withStatus is the version, which exists, whose status the push changes, or that it deletes.
	withStatus oci.Digest
	// left is the status that this deletion has left; nil if it has left none.
	left *leftStatus
}

// actions returns the actions of which one must be allowed for a request, before its body is read, and nil for a method
// that the API does not have.
func (p *push) actions(r *http.Request) []access.Action {
	any := []access.Action{access.Publish, access.Create, access.Yank}
	switch {
	case p.api.Endpoint == protocol.Manifest && r.Method == http.MethodPut,
		p.api.Endpoint == protocol.StartUpload && r.Method == http.MethodPost,
		p.api.Endpoint == protocol.Upload:
		return any
	case p.api.Endpoint == protocol.Manifest && r.Method == http.MethodDelete:
		// The garbage collection removes blobs: the blobs of a version must not disappear before it.
		return []access.Action{access.Delete}
	}
	return nil
}

// checkIndex checks that the repository of a change is not the one of the index.
func (p *push) checkIndex() error {
	if p.publishesIndexIn(p.api.Repository) {
		return access.ErrReservedName.New(
			nil, "only the server itself changes the repository %s, which has its index", indexRepository,
		)
	}
	return nil
}

// checkRepository checks that the subject may create the repository of a push under its name, unless it has tags, and
// that it is not the one of the index.
func (p *push) checkRepository(ctx context.Context) error {
	if err := p.checkIndex(); err != nil {
		return err
	}
	if exists, err := p.images.hasTags(ctx, p.api.Repository); err != nil || exists {
		return err
	}
	p.isNew = true
	if !p.policy().May(p.subject, p.api.Repository, access.Create) {
		return p.forbidden(access.Create)
	}
	similar, err := p.similar(ctx)
	if err != nil {
		return err
	}
	existing, err := p.firstWithTags(ctx, similar)
	if err != nil {
		return err
	}
	return p.policy().CheckNew(p.api.Repository, existing)
}

// firstWithTags returns the first one of some repositories that has tags; none if none has.
func (p *push) firstWithTags(ctx context.Context, repositories []string) ([]string, error) {
	for i, repository := range repositories {
		if exists, err := p.images.hasTags(ctx, repository); err != nil || exists {
			return repositories[i : i+1], err
		}
	}
	return nil, nil
}

// similar returns the repositories with similar names that the subject can read: the refusal of a name reveals no other
// one.
func (p *push) similar(ctx context.Context) ([]string, error) {
	all, err := p.images.repositories(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool {
		return !access.Similar(name, p.api.Repository) || !p.mayKnow(name)
	}), nil
}

// mayKnow reports whether the subject can read a repository.
func (p *push) mayKnow(repository string) bool {
	policy := p.policy()
	// The scope of a bearer token is one repository.
	return policy.May(access.Anonymous(), repository, access.Read) ||
		policy.May(p.subject.WithoutRequested(), repository, access.Read)
}

// manifest serves the push or the deletion of a manifest. Changes of one repository, and of those with similar names,
// are made one after another, so that two pushes of one version cannot both find it missing, and only one of several
// similar names gets its first tag.
func (p *push) manifest(w http.ResponseWriter, r *http.Request) {
	body, err := readManifest(r)
	if err != nil {
		writeRefusal(w, r, err)
		return
	}
	unlock, err := p.changing.Lock(r.Context(), access.Fold(p.api.Repository))
	if err != nil { // The client has disconnected.
		protocol.WriteError(
			w, r, http.StatusServiceUnavailable, protocol.CodeUnknown,
			"the request ended while other changes of the repository were made; try again",
		)
		return
	}
	defer unlock()
	// The token can have been revoked, and the policy can have changed, while the client sent the manifest or waited.
	subject, found := p.identifier.subject(r)
	if found == wrongCredentials {
		p.challenge(w, r, "the credentials are wrong or have expired")
		return
	}
	p.subject = subject
	if actions := p.actions(r); !p.mayAny(subject, p.api.Repository, actions) {
		p.refuse(w, r, p.api, subject, found, actions)
		return
	}
	if r.Method == http.MethodDelete {
		// The deletion goes on when the client has disconnected, because it has two parts: the status and the version.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), deletionLimit)
		defer cancel()
		r = r.WithContext(ctx)
	}
	if p.publisher != nil {
		if err := p.publisher.check(r.Context()); err != nil {
			writeRefusal(w, r, err)
			return
		}
	}
	if err := p.check(r, body); err != nil {
		if p.left != nil {
			p.restoreStatus(r.Context())
		}
		writeRefusal(w, r, err)
		return
	}
	forward := withPath(r, p.api)
	forward.Body, forward.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	answer := &statusRecorder{ResponseWriter: w}
	switch {
	case r.Method == http.MethodDelete:
		p.forwardDeletion(answer, forward)
	case p.options.Backend != nil:
		p.forwardClaimed(answer, forward, body)
	default:
		p.images.ServeHTTP(answer, forward)
	}
	if answer.status < http.StatusMultipleChoices {
		p.limiter.Repositories.Remove(p.api.Repository)
		p.keepRemoved(r.Context())
		p.changed(p.api.Repository)
	}
}

// readManifest returns the body of a push, within limits of size and time.
func readManifest(r *http.Request) ([]byte, error) {
	if r.Method != http.MethodPut {
		return nil, nil
	}
	limit.Body(r, manifestTime)
	body, err := io.ReadAll(io.LimitReader(r.Body, protocol.LargestManifest+1))
	if err != nil {
		return nil, oci.ErrInvalidManifest.New(err, "cannot read the manifest")
	}
	if len(body) > protocol.LargestManifest {
		return nil, oci.ErrManifestTooLarge.New(nil, "the manifest has more than %d bytes", protocol.LargestManifest)
	}
	return body, nil
}

// check checks a change against the rules of the registry.
func (p *push) check(r *http.Request, body []byte) error {
	if r.Method == http.MethodDelete {
		return p.checkDeletion(r.Context())
	}
	if err := p.checkRepository(r.Context()); err != nil {
		return err
	}
	tags, err := p.tags(r)
	if err != nil {
		return err
	}
	doc, err := oci.ParseDocument(body, mediaType(r), oci.Limits{})
	if err != nil {
		return err
	}
	digest := oci.DigestOf(body)
	if err := p.checkContent(r.Context(), tags, doc, pushedManifest{
		packages: p.packages, repository: p.api.Repository, raw: body,
		root: oci.Descriptor{MediaType: doc.MediaType, Digest: digest, Size: int64(len(body))},
	}); err != nil {
		return err
	}
	if err := p.checkTombstones(r.Context(), tags, digest); err != nil {
		return err
	}
	for _, tag := range tags {
		if err := p.checkTag(r.Context(), tag, digest); err != nil {
			return err
		}
	}
	return nil
}

// checkTombstones checks that a push changes no status of a version that was deleted.
func (p *push) checkTombstones(ctx context.Context, tags []string, digest oci.Digest) error {
	ref, err := p.packages.reference(p.api.Repository)
	if err != nil {
		return err
	}
	for _, tag := range tags {
		subject, isStatus := catalog.ParseStatusTag(tag)
		if !isStatus {
			continue
		}
		version, err := p.images.digest(ctx, p.api.Repository, subject.String())
		if err != nil {
			return err
		}
		p.withStatus = version
		current, err := p.images.digest(ctx, p.api.Repository, tag)
		if err != nil {
			return err
		}
		if current.IsZero() || current == digest {
			continue
		}
		if err := p.checkStatus(ctx, ref, subject); err != nil {
			return err
		}
	}
	return nil
}

// mediaType returns the declared media type of a manifest.
func mediaType(r *http.Request) oci.MediaType {
	declared, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return oci.MediaType(strings.TrimSpace(declared))
}

// tags returns the tags that a push writes: the reference, or the tags in the query of a push by digest.
func (p *push) tags(r *http.Request) ([]string, error) {
	tags := r.URL.Query()["tag"]
	if storage.IsTag(p.api.Reference) {
		tags = append(tags[:len(tags):len(tags)], p.api.Reference)
	}
	if len(tags) > mostQueryTags {
		return nil,
			oci.ErrManifestTooLarge.New(nil, "the push writes %d tags, at most %d are allowed", len(tags), mostQueryTags)
	}
	for _, tag := range tags {
		if !oci.ValidTag(tag) {
			return nil, oci.ErrInvalidManifest.New(nil, "%q is not a valid tag", tag)
		}
	}
	return tags, nil
}

// isStatusType reports whether the referrers of a subject list a document as the status of a version: by its artifact
// type, or by the media type of its configuration, which counts if there is no artifact type. Readers do not all
// compare media types alike.
func isStatusType(doc *oci.Document) bool {
	artifactType := doc.ArtifactType
	if artifactType == "" && doc.Config != nil {
		artifactType = string(doc.Config.MediaType)
	}
	return strings.EqualFold(artifactType, catalog.StatusArtifactType)
}

// checkContent checks that the subject may push this kind of content under the tags. The status of a version needs the
// action yank, and so does its addition to the list of the referrers of the version. Everything else needs the action
// publish. A status needs both if it gets other tags than its own.
func (p *push) checkContent(ctx context.Context, tags []string, doc *oci.Document, content oci.Artifact) error {
	isStatus := isStatusType(doc)
	if isStatus && (doc.ArtifactType != catalog.StatusArtifactType || doc.Subject == nil) {
		return oci.ErrInvalidManifest.New(
			nil, "the status of a version has the artifact type %s in the field artifactType, and a subject",
			catalog.StatusArtifactType,
		)
	}
	publishes := !isStatus
	for _, tag := range tags {
		subject, isStatusTag := catalog.ParseStatusTag(tag)
		if isStatusTag && (!isStatus || subject != doc.Subject.Digest) {
			return oci.ErrInvalidManifest.New(nil, "the tag %s is reserved for the status of a version", tag)
		}
		publishes = publishes || !isStatusTag
	}
	if publishes && !p.policy().May(p.subject, p.api.Repository, access.Publish) {
		if lists, err := p.listsStatuses(ctx, tags, doc); err != nil || lists {
			return err
		}
		return p.forbidden(access.Publish)
	}
	if !isStatus {
		return nil
	}
	status, err := packagestatus.FromArtifact(ctx, content, doc.Subject.Digest)
	if err != nil {
		return err
	}
	return p.checkState(ctx, status)
}

// checkState checks that the subject may state what a status states: that a version was removed is for those who may
// delete it, and the status of a version that the repository does not have, which reserves its tag, is for those who
// may publish it, as a mirror does. Clients ask for a bearer token to push, which does not name the deletion.
func (p *push) checkState(ctx context.Context, status catalog.VersionStatus) error {
	switch policy := p.policy(); {
	case !policy.May(p.subject, p.api.Repository, access.Yank):
		return p.forbidden(access.Yank)
	case status.State == catalog.Removed && !policy.May(p.subject.WithoutRequested(), p.api.Repository, access.Delete):
		return p.forbidden(access.Delete)
	case policy.May(p.subject, p.api.Repository, access.Publish):
		return nil
	}
	has, err := p.hasVersion(ctx, status)
	if err == nil && !has {
		err = ErrForbidden.New(nil,
			"%s:%s is not %s, and the token does not allow the action %s, which the status of another version needs; %s",
			p.api.Repository, status.Tag, status.Digest.Short(), access.Publish, createToken(p.api.Repository, access.Publish))
	}
	return err
}

// hasVersion reports whether the tag in a status refers to the digest in it, or did so before the version was deleted:
// then it has a status already.
func (p *push) hasVersion(ctx context.Context, status catalog.VersionStatus) (bool, error) {
	current, err := p.images.digest(ctx, p.api.Repository, status.Tag)
	if err != nil || current == status.Digest {
		return err == nil, err
	}
	ref, err := p.packages.reference(p.api.Repository)
	if err != nil {
		return false, err
	}
	former, err := packagestatus.Read(ctx, p.packages.client, ref.WithDigest(status.Digest))
	if err != nil && errcode.From(err).Code.Class == errcode.Invalid {
		return false, nil
	}
	return former != nil && former.Tag == status.Tag, err
}

// pushedManifest is an artifact whose manifest a client pushes, and whose layers the repository has already.
type pushedManifest struct {
	packages   *Packages
	repository string
	root       oci.Descriptor
	raw        []byte
}

// Root implements [oci.Artifact].
func (m pushedManifest) Root() oci.Descriptor { return m.root }

// Open implements [oci.Artifact].
func (m pushedManifest) Open(ctx context.Context, d oci.Descriptor) (io.ReadCloser, error) {
	content := m.raw
	if d.Digest != m.root.Digest {
		var err error
		if content, err = m.packages.blob(ctx, m.repository, d); err != nil {
			return nil, err
		}
	}
	return io.NopCloser(bytes.NewReader(content)), nil
}

// forbidden returns the error for an action that the subject may not perform on the repository.
func (p *push) forbidden(action access.Action) error {
	return ErrForbidden.New(
		nil, "the token does not allow the action %s on %s; %s", action, p.api.Repository,
		createToken(p.api.Repository, action),
	)
}

// checkTag checks that a version is not published again with other content, under any spelling, such as 1.0.0 and
// v1.00.0 for v1.0.0.
func (p *push) checkTag(ctx context.Context, tag string, digest oci.Digest) error {
	wanted := version.ParseLenient(tag)
	if !wanted.Usable() {
		return nil
	}
	published, err := p.packages.published(ctx, p.api.Repository, isSpellingOf(wanted))
	if err != nil {
		return err
	}
	for _, same := range slices.Sorted(maps.Keys(published)) {
		if current := published[same]; current != digest {
			return p.immutable(same, current, digest)
		}
	}
	return nil
}

// isSpellingOf returns a function that reports whether a tag is a spelling of a version.
func isSpellingOf(wanted version.Version) func(tag string) bool {
	return func(tag string) bool {
		v := version.ParseLenient(tag)
		return v.Usable() && v.Compare(&wanted) == 0
	}
}

// immutable returns the error for a version that has other content.
func (p *push) immutable(tag string, current, wanted oci.Digest) error {
	return remote.ErrImmutable.New(
		nil, "%s:%s is %s and cannot become %s: versions never change", p.api.Repository, tag, current.Short(),
		wanted.Short(),
	)
}

// statusRecorder records the status of a response.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements [http.ResponseWriter].
func (s *statusRecorder) WriteHeader(status int) {
	if s.status == 0 {
		s.status = status
	}
	s.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (s *statusRecorder) Write(p []byte) (int, error) {
	if s.status == 0 {
		s.status = http.StatusOK
	}
	return s.ResponseWriter.Write(p)
}

// Unwrap returns the writer for [http.ResponseController].
func (s *statusRecorder) Unwrap() http.ResponseWriter { return s.ResponseWriter }
