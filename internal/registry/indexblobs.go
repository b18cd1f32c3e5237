package registry

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/xpkg-dev/xpkg/internal/indexer"
	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// indexBlobs selects the blobs of the published index that clients may read: those of its current state, of the former states that remain, and of
// their signatures, if the client may read a manifest with the blob. The blobs of a removed state stay in the registry until it collects them, and can
// name packages that are private now.
type indexBlobs struct {
	packages *Packages
	guard    *indexGuard
	images   images
	now      func() time.Time

	mu sync.Mutex
	// tags is the state of the repository in which the blobs were looked up, at a time.
	tags string
	at   time.Time
	// manifests are the manifests that refer to each blob.
	manifests map[oci.Digest][]oci.Digest
}

// lookupInterval is the time after which the blobs are looked up again for one that is not found.
const lookupInterval = time.Second

// mayRead reports whether a manifest that the repository has, and that a subject may read, refers to a blob.
func (b *indexBlobs) mayRead(ctx context.Context, subject access.Subject, blob oci.Digest) (bool, error) {
	manifests, err := b.manifestsOf(ctx, blob)
	if err != nil {
		return false, err
	}
	for _, m := range manifests {
		found, err := b.images.digest(ctx, indexRepository, m.String())
		if err != nil {
			return false, err
		}
		if found.IsZero() {
			continue
		}
		if allowed, err := b.guard.mayRead(ctx, subject, m); allowed || err != nil {
			return allowed, err
		}
	}
	return false, nil
}

// manifestsOf returns the manifests that refer to a blob, some of which can have been deleted.
func (b *indexBlobs) manifestsOf(ctx context.Context, blob oci.Digest) ([]oci.Digest, error) {
	ref, err := b.packages.reference(indexRepository)
	if err != nil {
		return nil, err
	}
	tags, err := b.packages.client.ExistingTags(ctx, ref)
	if err != nil {
		return nil, err
	}
	current, err := b.images.digest(ctx, indexRepository, indexTag)
	if err != nil {
		return nil, err
	}
	state := current.String() + " " + strings.Join(tags, " ")
	b.mu.Lock()
	defer b.mu.Unlock()
	if state == b.tags && (len(b.manifests[blob]) > 0 || b.now().Sub(b.at) < lookupInterval) {
		return b.manifests[blob], nil
	}
	found := map[oci.Digest][]oci.Digest{}
	for _, tag := range tags {
		if err := b.add(ctx, found, ref.WithTag(tag)); err != nil {
			return nil, err
		}
	}
	if slices.Contains(tags, indexTag) {
		if err := b.addFormer(ctx, found, ref.WithTag(indexTag)); err != nil {
			return nil, err
		}
	}
	b.tags, b.at, b.manifests = state, b.now(), found
	return found[blob], nil
}

// add adds the blobs of an artifact; none if it does not exist.
func (b *indexBlobs) add(ctx context.Context, found map[oci.Digest][]oci.Digest, ref oci.Reference) error {
	a, err := b.packages.client.Artifact(ctx, ref)
	if err == nil {
		root := a.Root().Digest
		err = oci.Walk(ctx, a, oci.Limits{}, func(_ context.Context, d oci.Descriptor, _ []byte) error {
			found[d.Digest] = append(found[d.Digest], root)
			return nil
		})
	}
	if indexer.IsAbsent(err) || errors.Is(err, oci.ErrManifestNotFound) {
		return nil
	}
	return err
}

// addFormer adds the blobs of the former states that the repository has.
func (b *indexBlobs) addFormer(ctx context.Context, found map[oci.Digest][]oci.Digest, state oci.Reference) error {
	for range mostWalked {
		config, err := indexer.ReadConfig(ctx, b.packages.client, state)
		if err != nil || config.Previous.IsZero() {
			return ctx.Err() // The state was removed.
		}
		state = state.WithDigest(config.Previous)
		if err := b.add(ctx, found, state); err != nil {
			return err
		}
	}
	return nil
}
