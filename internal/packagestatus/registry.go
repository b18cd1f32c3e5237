package packagestatus

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// Read returns the status of the version with the digest of a reference, and nil if it has none.
func Read(ctx context.Context, client *remote.Client, version oci.Reference) (*catalog.VersionStatus, error) {
	tagged := version.WithTag(catalog.StatusTag(version.Digest))
	a, err := client.Artifact(ctx, tagged)
	if errors.Is(err, remote.ErrTagNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s, err := FromArtifact(ctx, a, version.Digest)
	if err != nil {
		return nil, err
	}
	return &s, nil
}

// ReadCached returns the status of a version from the artifact with the digest of a reference, which is read once into
// a store.
func ReadCached(
	ctx context.Context, client *remote.Client, cache *store.Store, artifact oci.Reference, version oci.Digest,
) (*catalog.VersionStatus, error) {
	a, err := client.Cached(ctx, artifact, cache)
	if err != nil {
		return nil, err
	}
	s, err := FromArtifact(ctx, a, version)
	if err != nil {
		return nil, err
	}
	return &s, nil
}

// Has reports whether a list of tags contains the status of a version.
func Has(tags []string, version oci.Digest) bool {
	return slices.Contains(tags, catalog.StatusTag(version))
}

// Write pushes the status of the version at a reference with a tag, and returns the digest of the version. The artifact
// is a referrer of the version and has the tag of its status.
func Write(
	ctx context.Context, client *remote.Client, version oci.Reference, status catalog.Status,
) (oci.Digest, error) {
	subject, err := subjectOf(ctx, client, version)
	if err != nil {
		return oci.Digest{}, err
	}
	return subject.Digest, write(ctx, client, version, subject, status)
}

func write(
	ctx context.Context, client *remote.Client, version oci.Reference, subject oci.Descriptor, status catalog.Status,
) error {
	if status.Since.IsZero() {
		status.Since = time.Now()
	}
	return put(ctx, client, version, subject, catalog.VersionStatus{
		Status: status, Tag: version.Tag, Digest: subject.Digest,
	})
}

// Delete deletes the version at a reference with a tag, and returns its digest. With a digest in the reference, it
// deletes that content, even if the tag has moved. It writes the status that the version is removed first, so that an
// interrupted deletion leaves the reason. If the registry refuses the deletion, the version has its former status
// again.
func Delete(
	ctx context.Context, client *remote.Client, version oci.Reference, removed catalog.Status,
) (oci.Digest, error) {
	subject, err := subjectOf(ctx, client, version)
	if err != nil {
		return oci.Digest{}, err
	}
	former, err := Read(ctx, client, version.WithDigest(subject.Digest))
	if err != nil && errcode.From(err).Code.Class != errcode.Invalid {
		return subject.Digest, err
	}
	if err := write(ctx, client, version, subject, removed); err != nil {
		return subject.Digest, err
	}
	err = client.Delete(ctx, version.WithDigest(subject.Digest))
	if err == nil || !isRefusal(err) {
		return subject.Digest, err
	}
	if restored := restore(ctx, client, version, subject, former); restored != nil {
		return subject.Digest, errors.Join(err, restored)
	}
	return subject.Digest, err
}

// Restore writes the status that the version at a reference with a tag had before a deletion that was refused; nil
// means that it had none.
func Restore(ctx context.Context, client *remote.Client, version oci.Reference, former *catalog.VersionStatus) error {
	subject, err := subjectOf(ctx, client, version)
	if err != nil {
		return err
	}
	return restore(ctx, client, version, subject, former)
}

func restore(
	ctx context.Context, client *remote.Client, version oci.Reference, subject oci.Descriptor,
	former *catalog.VersionStatus,
) error {
	status := catalog.Status{State: catalog.Available, Since: time.Now()}
	if former != nil {
		status = former.Status
	}
	// The tag in the former status can refer to other content now, such as latest.
	return put(ctx, client, version, subject, catalog.VersionStatus{
		Status: status, Tag: version.Tag, Digest: subject.Digest,
	})
}

// subjectOf returns the descriptor of the version at a reference with a tag, and of the content with its digest if it
// has one.
func subjectOf(ctx context.Context, client *remote.Client, version oci.Reference) (oci.Descriptor, error) {
	if version.Tag == "" {
		return oci.Descriptor{}, oci.ErrInvalidReference.New(nil, "reference %s has no tag", version)
	}
	image, err := client.Artifact(ctx, version)
	if err != nil {
		return oci.Descriptor{}, err
	}
	return image.Root(), nil
}

// isRefusal reports whether a registry has refused a deletion: then it has not happened, and does not happen later.
func isRefusal(err error) bool {
	return errors.Is(err, remote.ErrRefused) || errors.Is(err, remote.ErrUnauthorized)
}

// put pushes the status of a subject.
func put(
	ctx context.Context, client *remote.Client, version oci.Reference, subject oci.Descriptor, s catalog.VersionStatus,
) error {
	a, err := NewArtifact(subject, s)
	if err != nil {
		return err
	}
	if _, err := client.Attach(ctx, version, a); err != nil {
		return err
	}
	_, err = client.Push(ctx, version.WithTag(catalog.StatusTag(subject.Digest)), a)
	return err
}

// SetRemoved changes the status of a version that was deleted, with the digest of a reference, to removed. It keeps the
// reason. It does nothing if the version has no status.
func SetRemoved(ctx context.Context, client *remote.Client, version oci.Reference, since time.Time) error {
	tagged := version.WithTag(catalog.StatusTag(version.Digest))
	a, err := client.Artifact(ctx, tagged)
	if errors.Is(err, remote.ErrTagNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	s, err := FromArtifact(ctx, a, version.Digest)
	if err != nil || s.State == catalog.Removed {
		return err
	}
	_, doc, err := oci.ReadDocument(ctx, a, a.Root(), oci.Limits{})
	if err != nil {
		return err
	}
	if s.State == catalog.Available {
		s.Reason = catalog.Other
	}
	s.State, s.Since = catalog.Removed, since
	return put(ctx, client, version.WithTag(s.Tag), *doc.Subject, s)
}
