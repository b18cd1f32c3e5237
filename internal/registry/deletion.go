package registry

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/xpkg-dev/xpkg/internal/packagestatus"
	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/internal/registry/protocol"
	"github.com/xpkg-dev/xpkg/internal/registry/storage"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/version"
)

// deletionTime is the time after which a version cannot be deleted. It can be yanked then.
const deletionTime = 72 * time.Hour

// deletionLimit limits the time for a deletion in the registry behind the server.
const deletionLimit = 5 * time.Minute

// checkDeletion checks that content can be deleted, and leaves the status of a version that is.
func (p *push) checkDeletion(ctx context.Context) error {
	if err := p.checkIndex(); err != nil {
		return err
	}
	if err := p.checkAge(); err != nil {
		return err
	}
	target, err := p.target(ctx)
	if err != nil || target.IsZero() {
		return err
	}
	ref, err := p.packages.reference(p.api.Repository)
	if err != nil {
		return err
	}
	if err := p.checkStatusDeletion(ctx, ref.WithDigest(target)); err != nil {
		return err
	}
	versions, err := p.versionsOf(ctx, ref, target)
	// Only this tag is deleted.
	isOtherTag := storage.IsTag(p.api.Reference) && !slices.Contains(versions, p.api.Reference)
	switch {
	case err != nil || len(versions) == 0 || isOtherTag:
		return err
	case len(versions) > 1:
		return ErrPublished.New(
			nil, "several versions of %s have this content: %s", p.api.Repository, wording.Few(versions, 5, ", "),
		)
	}
	p.withStatus = target
	return p.leaveStatus(ctx, ref.WithTag(versions[0]), target)
}

// checkStatusDeletion checks that the subject may change statuses if the content to delete is the status of a version.
func (p *push) checkStatusDeletion(ctx context.Context, content oci.Reference) error {
	if p.policy().May(p.subject, p.api.Repository, access.Yank) {
		return nil
	}
	a, err := p.packages.client.Artifact(ctx, content)
	if err != nil {
		if isTemporary(ctx, err) {
			return err
		}
		return nil // It does not exist, or is no manifest that states a type.
	}
	_, doc, err := oci.ReadDocument(ctx, a, a.Root(), oci.Limits{})
	if err != nil || !isStatusType(doc) {
		return nil //nolint:nilerr // Content that is not valid is no status.
	}
	return p.forbidden(access.Yank)
}

// isTemporary reports whether a later attempt to read content can succeed.
func isTemporary(ctx context.Context, err error) bool {
	class := errcode.From(err).Code.Class
	return class == errcode.Unavailable || class == errcode.Timeout || ctx.Err() != nil
}

// keepRemoved writes the status of the version of a change again if the version does not exist any more and has another
// status: through another server in front of the registry, a client can change the status while this one deletes the
// version, or the other way round. The server whose change is the last one sees both.
func (p *push) keepRemoved(ctx context.Context) {
	if p.options.Backend == nil || p.withStatus.IsZero() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearingTime)
	defer cancel()
	exists, err := p.images.digest(ctx, p.api.Repository, p.withStatus.String())
	if err == nil && !exists.IsZero() {
		return
	}
	if err == nil {
		var ref oci.Reference
		if ref, err = p.packages.reference(p.api.Repository); err == nil {
			err = packagestatus.SetRemoved(ctx, p.packages.client, ref.WithDigest(p.withStatus), p.now())
		}
	}
	if err != nil {
		p.log.Error(
			"cannot write that a version was deleted", "repository", p.api.Repository, "digest", p.withStatus, "error", err,
		)
	}
}

// leftStatus is the status of a version that is to be deleted.
type leftStatus struct {
	// version has the tag and the digest of the version.
	version oci.Reference
	// former is the status before; nil if there was none.
	former *catalog.VersionStatus
}

// forwardDeletion forwards a deletion. A version whose deletion is refused has its former status again.
func (p *push) forwardDeletion(w http.ResponseWriter, r *http.Request) {
	answer := &manifestAnswer{header: http.Header{}}
	p.images.ServeHTTP(answer, r)
	if p.left != nil && answer.refuses() {
		p.restoreStatus(r.Context())
	}
	answer.send(w)
}

// refuses reports whether the response refuses a deletion: then it has not happened, and does not happen later. A
// backend that rejects the credentials of this server refuses it, too.
func (a *manifestAnswer) refuses() bool {
	switch a.status {
	case http.StatusNotFound, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	case http.StatusBadGateway:
		var body struct{ Errors []struct{ Code string } }
		return json.Unmarshal(a.body.Bytes(), &body) == nil && len(body.Errors) > 0 &&
			body.Errors[0].Code == protocol.CodeDenied
	}
	return a.status >= http.StatusBadRequest && a.status < http.StatusInternalServerError
}

// restoreStatus writes the former status of a version that was not deleted.
func (p *push) restoreStatus(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearingTime)
	defer cancel()
	if err := packagestatus.Restore(ctx, p.packages.client, p.left.version, p.left.former); err != nil {
		p.log.Error(
			"a version was not deleted, but its status states that it was; withdraw the status with `xpkg registry unyank`",
			"version", p.left.version, "error", err,
		)
	}
	p.changed(p.api.Repository)
}

// target returns the digest of the content to delete; zero if it does not exist.
func (p *push) target(ctx context.Context) (oci.Digest, error) {
	if !storage.IsTag(p.api.Reference) {
		return oci.ParseDigest(p.api.Reference)
	}
	return p.images.digest(ctx, p.api.Repository, p.api.Reference)
}

// versionsOf returns the tags of the versions with a digest. It fails if the content is a part of a version, or the
// status of one that was deleted.
func (p *push) versionsOf(ctx context.Context, ref oci.Reference, target oci.Digest) ([]string, error) {
	tags, err := p.packages.client.ExistingTags(ctx, ref)
	if err != nil {
		return nil, err
	}
	var versions []string
	for _, tag := range tags {
		a, err := p.packages.client.Artifact(ctx, ref.WithTag(tag))
		if err != nil {
			if isTemporary(ctx, err) {
				return nil, err
			}
			// The tag has no image, so it is no version of a package, or the image is damaged.
			if d, err := p.images.digest(ctx, p.api.Repository, tag); err == nil && d == target && packagestatus.IsVersion(tag) {
				versions = append(versions, tag)
			}
			continue
		}
		root := a.Root()
		subject, isStatus := catalog.ParseStatusTag(tag)
		switch {
		case isStatus && root.Digest == target:
			if err := p.checkStatus(ctx, ref, subject); err != nil {
				return nil, err
			}
		case packagestatus.IsVersion(tag) && root.Digest == target:
			versions = append(versions, tag)
		case packagestatus.IsVersion(tag):
			isPart, err := oci.Contains(ctx, a, target, oci.Limits{})
			if isPart || errors.Is(err, oci.ErrIndexTooDeep) {
				return nil, ErrPublished.New(err, "the content is a part of %s:%s", p.api.Repository, tag)
			}
			if err != nil && isTemporary(ctx, err) {
				return nil, err
			}
		}
	}
	return versions, nil
}

// checkStatus fails for the status of a version that was deleted, which states that the version cannot be published
// again.
func (p *push) checkStatus(ctx context.Context, ref oci.Reference, subject oci.Digest) error {
	s, err := packagestatus.Read(ctx, p.packages.client, ref.WithDigest(subject))
	if err != nil && isTemporary(ctx, err) {
		return err
	}
	if err != nil || s == nil || s.State != catalog.Removed {
		return nil //nolint:nilerr // Other content under the tag is no status, and neither is damaged content.
	}
	exists, err := p.images.digest(ctx, p.api.Repository, subject.String())
	if err != nil || !exists.IsZero() {
		return err
	}
	return remote.ErrImmutable.New(nil, "%s:%s was deleted, and its status never changes", p.api.Repository, s.Tag)
}

// leaveStatus writes the status of a version that is to be deleted, unless the client has written it.
func (p *push) leaveStatus(ctx context.Context, version oci.Reference, d oci.Digest) error {
	s, err := packagestatus.Read(ctx, p.packages.client, version.WithDigest(d))
	if err != nil && errcode.From(err).Code.Class != errcode.Invalid {
		return err
	}
	if s != nil && s.State == catalog.Removed && s.Tag == version.Tag {
		return nil
	}
	status := catalog.Status{State: catalog.Removed, Reason: catalog.Other, Since: p.now()}
	if s != nil && s.State != catalog.Available {
		status.Reason, status.Message, status.ReplacedBy = s.Reason, s.Message, s.ReplacedBy
	}
	// The write can succeed although it fails for this server.
	p.left = &leftStatus{version.WithDigest(d), s}
	_, err = packagestatus.Write(ctx, p.packages.client, version, status)
	return err
}

// checkAge checks that a version is new enough to be deleted and that no package depends on it. Administrators can
// delete all content.
func (p *push) checkAge() error {
	if p.policy().IsAdministrator(p.subject) {
		return nil
	}
	view := p.fullView()
	row, history, ok := view.Package(p.api.Repository)
	if !ok {
		return nil
	}
	for _, v := range history.Versions {
		if v.Tag != p.api.Reference && v.Digest.String() != p.api.Reference {
			continue
		}
		if pushed := p.images.pushed(p.api.Repository, v.Digest); !pushed.IsZero() && p.now().Sub(pushed) > deletionTime {
			return ErrPublished.New(nil, "%s:%s was published more than 72 hours ago", p.api.Repository, v.Tag)
		}
		if err := checkDependents(view, row.Repository, v); err != nil {
			return err
		}
	}
	return nil
}

// fullView returns the view of all packages.
func (s *Server) fullView() *View {
	return s.site.view(access.Subject{User: defaultAdministrator, Grants: []access.Scope{{
		Repositories: []string{"*"}, Actions: []access.Action{access.Read},
	}}})
}

// checkDependents checks that no newest version of a package depends on a version. The error names no dependents,
// because the client may not be allowed to read them.
func checkDependents(view *View, repository string, v catalog.Version) error {
	for _, d := range view.Dependents(repository) {
		if version.ParseConstraint(d.Constraint).Accepts(v.Tag) {
			return ErrPublished.New(nil, "other packages depend on %s:%s", repository, v.Tag)
		}
	}
	return nil
}

// pushed implements images. The time is not known.
func (b *backend) pushed(string, oci.Digest) time.Time { return time.Time{} }
