package indexer

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// statuses returns the statuses of versions, which the list of tags shows.
func (b *Builder) statuses(ctx context.Context, ref oci.Reference, tags []string) ([]catalog.VersionStatus, error) {
	var out []catalog.VersionStatus
	for _, tag := range tags {
		subject, isStatus := catalog.ParseStatusTag(tag)
		if !isStatus {
			continue
		}
		s, err := b.status(ctx, ref.WithTag(tag), subject)
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		if err == nil { // Anything else under such a tag is not a status.
			out = append(out, s)
		}
	}
	return out, nil
}

// maxStatusSize is the size of a status in bytes, as in package catalog.
const maxStatusSize = 16 << 10

// status reads the status of a version.
func (b *Builder) status(ctx context.Context, ref oci.Reference, subject oci.Digest) (_ catalog.VersionStatus, err error) {
	if err := b.requests.Acquire(ctx, 1); err != nil {
		return catalog.VersionStatus{}, err
	}
	defer b.requests.Release(1)
	a, err := b.opts.Remote.Artifact(ctx, ref)
	if err != nil {
		return catalog.VersionStatus{}, err
	}
	_, doc, err := oci.ReadDocument(ctx, a, a.Root(), oci.Limits{})
	if err != nil {
		return catalog.VersionStatus{}, err
	}
	if doc.ArtifactType != catalog.StatusArtifactType || len(doc.Layers) != 1 || doc.Subject == nil || doc.Subject.Digest != subject {
		return catalog.VersionStatus{}, catalog.ErrInvalidStatus.New(nil, "%s is not the status of %s", ref, subject.Short())
	}
	blob, err := a.Open(ctx, doc.Layers[0])
	if err != nil {
		return catalog.VersionStatus{}, err
	}
	defer func() { err = errors.Join(err, blob.Close()) }()
	text, err := io.ReadAll(io.LimitReader(blob, maxStatusSize+1))
	if err != nil {
		return catalog.VersionStatus{}, err
	}
	if oci.DigestOf(text) != doc.Layers[0].Digest {
		return catalog.VersionStatus{}, oci.ErrDigestMismatch.New(nil, "the status of %s is not %s", subject.Short(), doc.Layers[0].Digest)
	}
	s, err := catalog.ParseStatus(text)
	if err == nil && s.Digest != subject {
		err = catalog.ErrInvalidStatus.New(nil, "the status of %s names %s", subject.Short(), s.Digest.Short())
	}
	return s, err
}

// applyStatuses sets the statuses of versions. A removed version whose tag does not exist any more is added, so that
// the index still explains it.
func applyStatuses(repository string, facts []catalog.Facts, statuses []catalog.VersionStatus) []catalog.Facts {
	for i := range facts {
		facts[i].Version.Status = nil
	}
	for _, s := range statuses {
		applied := false
		for i := range facts {
			if facts[i].Version.Digest == s.Digest && s.State != catalog.Removed {
				facts[i].Version.Status = s.Normalize()
				applied = true
			}
		}
		exists := slices.ContainsFunc(facts, func(f catalog.Facts) bool { return f.Version.Tag == s.Tag })
		if s.State == catalog.Removed && !applied && !exists {
			facts = append(facts, catalog.Facts{
				Repository: repository,
				Version:    catalog.Version{Tag: s.Tag, Digest: s.Digest, Status: s.Normalize()},
			})
		}
	}
	return facts
}
