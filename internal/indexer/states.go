package indexer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// States are the states of repositories, by name, from which a catalog was built. A repository that is missing has to be read.
type States map[string]State

// A State identifies the tags of a repository and their digests. Zero means that it is not known.
type State [sha256.Size]byte

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

// digests returns the digests of tags, without those that do not exist although the registry lists them, and the state of the
// repository. A digest that cannot be read is missing, and the state is zero then; unread is the first such error.
func (b *Builder) digests(ctx context.Context, ref oci.Reference, tags []string) (found map[string]oci.Digest, state State, unread, err error) {
	digests, errs, err := b.resolve(ctx, ref, tags)
	if err != nil {
		return nil, State{}, nil, err
	}
	found = make(map[string]oci.Digest, len(tags))
	hash := sha256.New()
	for i, tag := range tags {
		switch {
		case errs[i] == nil:
			found[tag] = digests[i]
		case !errors.Is(errs[i], remote.ErrTagNotFound):
			unread = cmp.Or(unread, errs[i])
		}
		fmt.Fprintln(hash, tag, digests[i])
	}
	if unread != nil {
		return found, State{}, unread, nil
	}
	return found, State(hash.Sum(nil)), nil, nil
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

// isFinal reports whether a version with the same digest cannot be read by a later attempt either. A tag that does not exist has
// another digest once it does.
func isFinal(err error) bool {
	return !errcode.From(err).Code.Class.Retry || errors.Is(err, remote.ErrTagNotFound)
}
