package indexer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// States are the states of repositories, by name, from which a catalog was built. A repository that is missing has to
// be read.
type States map[string]State

// A State is what is known of a repository. The zero value means that nothing is known.
type State struct {
	// sum identifies the tags and their digests. Zero means that the repository has to be read again.
	sum [sha256.Size]byte
	// tags are the digests of the tags that a builder remembers; zero if a tag does not exist.
	tags map[string]oci.Digest
	// failed are the tags whose content cannot be read, for reasons that stay while their digests are the same.
	failed map[string]failure
}

// A failure is content that cannot be read.
type failure struct {
	digest oci.Digest
	// isOther means that the content is no package.
	isOther bool
}

// Digests returns the known digests of the tags of a repository, zero for tags that do not exist. They must not be
// changed.
func (s States) Digests(repository string) map[string]oci.Digest { return s[repository].tags }

// Forget makes the next update of a repository ask for the digests of the tags that are selected, and read those again
// that it could not read.
func (s States) Forget(repository string, selects func(tag string, d oci.Digest) bool) {
	state, known := s[repository]
	if !known {
		return
	}
	state.tags, state.failed = maps.Clone(state.tags), maps.Clone(state.failed)
	for tag, d := range state.tags {
		if selects(tag, d) {
			delete(state.tags, tag)
			delete(state.failed, tag)
			state.sum = State{}.sum
		}
	}
	s[repository] = state
}

// relevantTags returns the tags that the facts of a repository depend on: those of versions and of statuses.
func relevantTags(tags []string) []string {
	relevant := versionTags(tags)
	for _, tag := range tags {
		if _, isStatus := catalog.ParseStatusTag(tag); isStatus {
			relevant = append(relevant, tag)
		}
	}
	return relevant
}

// digests returns the digests of tags, without those that do not exist although the registry lists them, and the state
// of the repository. It asks for those that are not known. A digest that cannot be read is missing, and the state has
// no sum then; unread is the first such error.
func (b *Builder) digests(
	ctx context.Context, ref oci.Reference, tags []string, before State,
) (found map[string]oci.Digest, state State, unread, err error) {
	missing := slices.DeleteFunc(slices.Clone(tags), func(tag string) bool { _, known := before.tags[tag]; return known })
	digests, errs, err := b.resolve(ctx, ref, missing)
	if err != nil {
		return nil, State{}, nil, err
	}
	all := make(map[string]oci.Digest, len(tags))
	for i, tag := range missing {
		switch {
		case errs[i] == nil, errors.Is(errs[i], remote.ErrTagNotFound):
			all[tag] = digests[i]
		default:
			unread = cmp.Or(unread, errs[i])
		}
	}
	found = make(map[string]oci.Digest, len(tags))
	hash := sha256.New()
	for _, tag := range tags {
		if d, known := before.tags[tag]; known {
			all[tag] = d
		}
		if d := all[tag]; !d.IsZero() {
			found[tag] = d
		}
		fmt.Fprintln(hash, tag, all[tag])
	}
	if unread == nil {
		state.sum = [sha256.Size]byte(hash.Sum(nil))
	}
	if b.opts.Remember {
		state.tags = all
	}
	return found, state, unread, nil
}

// resolve returns the digests of tags, zero for those that do not exist, and the errors for those that cannot be read.
func (b *Builder) resolve(ctx context.Context, ref oci.Reference, tags []string) ([]oci.Digest, []error, error) {
	digests, errs := make([]oci.Digest, len(tags)), make([]error, len(tags))
	if b.opts.Digests != nil {
		all, err := b.opts.Digests(ref.RepositoryPath())
		for i, tag := range tags {
			if digests[i] = all[tag]; digests[i].IsZero() {
				errs[i] = remote.ErrTagNotFound
			}
		}
		return digests, errs, err
	}
	g, ctx := errgroup.WithContext(ctx)
	for i, tag := range tags {
		if err := b.requests.Acquire(ctx, 1); err != nil {
			return nil, nil, errors.Join(g.Wait(), err)
		}
		g.Go(func() error {
			defer b.requests.Release(1)
			var d oci.Descriptor
			d, errs[i] = b.opts.Remote.Resolve(ctx, ref.WithTag(tag))
			digests[i] = d.Digest
			return ctx.Err()
		})
	}
	if err := g.Wait(); err != nil {
		return nil, nil, err
	}
	return digests, errs, nil
}

// isFinal reports whether a version with the same digest cannot be read by a later attempt either. A tag that does not
// exist has another digest once it does.
func isFinal(err error) bool {
	return !errcode.From(err).Code.Class.Retry || errors.Is(err, remote.ErrTagNotFound)
}
