package registry

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/xpkg-dev/xpkg/internal/indexer"
	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// indexBlobs selects the blobs of the published index that clients may read: those of its current state, of the former
// states that remain, and of their signatures, if the client may read a manifest with the blob. The blobs of a removed
// state stay in the registry until it collects them, and can name packages that are private now.
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
	// known are the manifests of the last lookup.
	known map[oci.Digest]indexManifest
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
	found := lookup{indexBlobs: b, ref: ref, read: map[oci.Digest]indexManifest{}}
	if err := found.states(ctx, current); err != nil {
		return nil, err
	}
	if err := found.tags(ctx, tags); err != nil {
		return nil, err
	}
	manifests := map[oci.Digest][]oci.Digest{}
	for m, content := range found.read {
		for _, d := range content.blobs {
			manifests[d] = append(manifests[d], m)
		}
	}
	b.tags, b.at, b.manifests, b.known = state, b.now(), manifests, found.read
	return manifests[blob], nil
}

// indexManifest is a manifest of the repository of the index, which never changes.
type indexManifest struct {
	blobs []oci.Digest
	// previous is the state before one; zero for the first state, and for another manifest.
	previous oci.Digest
}

// lookup finds the manifests of the repository of the index, and reads those that are not known.
type lookup struct {
	*indexBlobs
	ref  oci.Reference
	read map[oci.Digest]indexManifest
}

// states adds the current state and the former ones that clients compare with it. A registry without deletions has any
// number of older ones.
func (l *lookup) states(ctx context.Context, current oci.Digest) error {
	for range mostStates + 1 {
		if current.IsZero() {
			return nil
		}
		m, err := l.manifest(ctx, current)
		if err != nil {
			return err
		}
		current = m.previous
	}
	return nil
}

// tags adds the manifests of tags. Signatures of states that were not added are omitted.
func (l *lookup) tags(ctx context.Context, tags []string) error {
	signatures := map[string]bool{}
	for state := range l.read {
		signatures[indexer.SignatureTag(state)] = true
	}
	for _, tag := range tags {
		if indexer.IsSignatureTag(tag) && !signatures[tag] {
			continue
		}
		d, err := l.images.digest(ctx, indexRepository, tag)
		if err != nil {
			return err
		}
		if d.IsZero() {
			continue
		}
		if _, err := l.manifest(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// manifest adds a manifest; it has no blobs if it does not exist.
func (l *lookup) manifest(ctx context.Context, d oci.Digest) (indexManifest, error) {
	if m, ok := l.read[d]; ok {
		return m, nil
	}
	m, ok := l.known[d]
	if !ok {
		var err error
		if m, err = l.fetch(ctx, l.ref.WithDigest(d)); err != nil {
			if indexer.IsAbsent(err) || errors.Is(err, oci.ErrManifestNotFound) {
				return indexManifest{}, nil // It was removed.
			}
			return indexManifest{}, err
		}
	}
	l.read[d] = m
	return m, nil
}

// fetch reads a manifest.
func (l *lookup) fetch(ctx context.Context, ref oci.Reference) (m indexManifest, err error) {
	a, err := l.packages.client.Artifact(ctx, ref)
	if err != nil {
		return m, err
	}
	err = oci.Walk(ctx, a, oci.Limits{}, func(_ context.Context, d oci.Descriptor, _ []byte) error {
		m.blobs = append(m.blobs, d.Digest)
		return nil
	})
	if err != nil {
		return m, err
	}
	config, err := indexer.ReadConfig(ctx, l.packages.client, ref)
	if err != nil && isTemporary(ctx, err) {
		return m, err
	}
	m.previous = config.Previous // Another manifest has no configuration of an index.
	return m, nil
}
