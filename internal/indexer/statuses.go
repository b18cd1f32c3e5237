package indexer

import (
	"context"

	"github.com/xpkg-dev/xpkg/internal/packagestatus"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// statuses returns the statuses of versions, which the list of tags shows. With the digests of their tags, each is read
// once.
func (b *Builder) statuses(
	ctx context.Context, ref oci.Reference, tags []string, digests map[string]oci.Digest,
) ([]catalog.VersionStatus, error) {
	var out []catalog.VersionStatus
	for _, tag := range tags {
		subject, isStatus := catalog.ParseStatusTag(tag)
		if !isStatus {
			continue
		}
		s, err := b.status(ctx, ref, subject, digests[tag])
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil && isTransient(err):
			return nil, err
		case err == nil && s != nil: // Anything else under such a tag is not a status.
			out = append(out, *s)
		}
	}
	return out, nil
}

// status reads the status of a version, whose artifact has a digest; zero if it is not known.
func (b *Builder) status(
	ctx context.Context, ref oci.Reference, subject, artifact oci.Digest,
) (*catalog.VersionStatus, error) {
	if err := b.requests.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer b.requests.Release(1)
	if artifact.IsZero() {
		return packagestatus.Read(ctx, b.opts.Remote, ref.WithDigest(subject))
	}
	return packagestatus.ReadCached(ctx, b.opts.Remote, b.opts.Store, ref.WithDigest(artifact), subject)
}

// isTransient reports whether a later attempt can succeed: a status that cannot be read now must not be taken for none.
func isTransient(err error) bool {
	class := errcode.From(err).Code.Class
	return class == errcode.Unavailable || class == errcode.Timeout || class == errcode.Unauthorized
}

// applyStatuses sets the statuses of versions. A removed version has no other facts, whether its tag still exists or
// not, as in a mirror that has a copy: its publisher has taken it back, and the index explains it.
func applyStatuses(repository string, facts []catalog.Facts, statuses []catalog.VersionStatus) []catalog.Facts {
	for i := range facts {
		facts[i].Version.Status = nil
	}
	for _, s := range statuses {
		found := false
		for i := range facts {
			v := &facts[i].Version
			// The digest of a version that cannot be read may not be known.
			isIt := v.Digest == s.Digest || v.Digest.IsZero() && v.Tag == s.Tag
			switch {
			case isIt && s.State == catalog.Removed:
				facts[i] = removed(repository, v.Tag, s)
			case isIt:
				v.Status = s.Normalize()
			case v.Tag != s.Tag:
				continue
			}
			found = true
		}
		if s.State == catalog.Removed && !found {
			facts = append(facts, removed(repository, s.Tag, s))
		}
	}
	return facts
}

// removed returns the facts of a removed version.
func removed(repository, tag string, s catalog.VersionStatus) catalog.Facts {
	return catalog.Facts{Repository: repository, Version: catalog.Version{
		Tag: tag, Digest: s.Digest, Status: s.Normalize(),
	}}
}
