package fetch

import (
	"context"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/indexlayer"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
	"github.com/xpkg-dev/xpkg/pkg/resolver"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/index"
)

// smallLayer is the size in bytes up to which a base layer is fetched instead of the index layer, which is only a
// claim.
const smallLayer = 256 << 10

// Description is the metadata of a package, for a caller that does not install it.
type Description = resolver.Metadata

// metaKey returns the key of the stored metadata of a package: read from package.yaml, or claimed by an index
// layer.
func metaKey(d oci.Digest) store.DerivedKey {
	return store.DerivedKey{Digest: d, Name: "meta", Version: derivedVersion}
}

func claimKey(d oci.Digest) store.DerivedKey {
	return store.DerivedKey{Digest: d, Name: "meta-claim", Version: derivedVersion}
}

// Describe returns the metadata of the package at an origin. The digest d, or the digest of the origin, selects the
// content; without either, the tag does, and the request for the manifest resolves it. The metadata of a digest is
// cached and costs no further request.
//
// Describe avoids fetching and checking objects: a large package with an index layer is not downloaded.
// [Source.Prove] downloads and verifies it.
func (s *Source) Describe(ctx context.Context, o Origin, d oci.Digest) (Description, error) {
	if d.IsZero() {
		d = o.Ref.Digest
	}
	if known, ok := s.described(ctx, o, d); ok {
		return known, nil
	}
	if known, err := s.atHand(ctx, o, d); err == nil {
		return known, nil
	}
	return first(ctx, o, func(p Endpoint) (Description, error) { return s.describe(ctx, o, p, d, smallLayer) })
}

// atHand reads a package from the store, without pull secrets.
func (s *Source) atHand(ctx context.Context, o Origin, d oci.Digest) (Description, error) {
	if d.IsZero() {
		return Description{}, oci.ErrBlobNotFound.New(nil, "no digest is known")
	}
	a, err := s.opts.Store.Artifact(ctx, d, s.opts.Limits)
	if err != nil {
		return Description{}, err
	}
	m, err := oci.FindManifest(ctx, a, oci.Platform{}, s.opts.Limits)
	if err != nil {
		return Description{}, err
	}
	return s.readMeta(ctx, o, m)
}

// Prove returns the metadata of content from its package.yaml, which is fetched if it is not in the store.
func (s *Source) Prove(ctx context.Context, o Origin, d oci.Digest) (Description, error) {
	if known, ok := s.described(ctx, o, d); ok && !known.Claimed {
		return known, nil
	}
	return first(ctx, o, func(p Endpoint) (Description, error) { return s.describe(ctx, o, p, d, noClaims) })
}

// noClaims is the value of smallLayer with which every base layer is fetched.
const noClaims = 1 << 62

// described returns the cached metadata of a digest.
func (s *Source) described(ctx context.Context, o Origin, d oci.Digest) (Description, bool) {
	if d.IsZero() {
		return Description{}, false
	}
	for _, kept := range []struct {
		key     store.DerivedKey
		claimed bool
	}{{metaKey(d), false}, {indexKey(d, false), false}, {claimKey(d), true}} {
		raw, err := s.opts.Store.GetDerived(ctx, kept.key)
		if err != nil {
			continue
		}
		x, err := index.Decode(raw)
		if err != nil {
			continue
		}
		x.File = o.at(d)
		if meta, err := x.ReadMeta(s.opts.FormatLimits); err == nil {
			return Description{Digest: d, Meta: meta, Claimed: kept.claimed}, true
		}
	}
	return Description{}, false
}

// describe reads the metadata from one location. It accepts a claim for base layers of more than small bytes.
func (s *Source) describe(ctx context.Context, o Origin, p Endpoint, d oci.Digest, small int64) (Description, error) {
	c, err := s.clients.get(ctx, p)
	if err != nil {
		return Description{}, err
	}
	if d.IsZero() {
		return s.describeTag(ctx, c, o, p.Ref)
	}
	return s.describeDigest(ctx, c, o, p.Ref.WithDigest(d), small)
}

// describeDigest fetches the required content into the store and reads it there.
func (s *Source) describeDigest(
	ctx context.Context, c *client, o Origin, ref oci.Reference, small int64,
) (Description, error) {
	m, err := c.remote.FetchManifest(ctx, ref, s.opts.Store, remote.FetchOptions{})
	if err != nil {
		return Description{}, err
	}
	if m.Base != nil && m.Base.Size > small {
		if layer := indexlayer.Find(m); layer != nil && layer.Size < m.Base.Size &&
			c.remote.FetchLayer(ctx, ref, m, *layer, s.opts.Store) == nil {
			if claim, err := s.claim(ctx, o, m, *layer); err == nil {
				return claim, nil
			}
		}
	}
	if _, err := c.remote.Fetch(ctx, ref, s.opts.Store, remote.FetchOptions{}); err != nil {
		return Description{}, err
	}
	s.noteOrigin(ctx, o.Ref, ref.Digest)
	return s.readMeta(ctx, o, m)
}

// claim reads the small layer.
func (s *Source) claim(ctx context.Context, o Origin, m oci.Manifest, layer oci.Descriptor) (Description, error) {
	a, err := s.opts.Store.Artifact(ctx, m.Root, s.opts.Limits)
	if err != nil {
		return Description{}, err
	}
	index, err := indexlayer.Read(ctx, a, layer)
	if err != nil {
		return Description{}, err
	}
	index.File = o.at(m.Root)
	index.Objects = nil
	meta, err := index.ReadMeta(s.opts.FormatLimits)
	if err != nil {
		return Description{}, err
	}
	s.remember(ctx, claimKey(m.Root), index)
	return Description{Digest: m.Root, Meta: meta, Claimed: true}, nil
}

// readMeta reads the metadata in package.yaml, which is in the store.
func (s *Source) readMeta(ctx context.Context, o Origin, m oci.Manifest) (Description, error) {
	room := &room{memory: s.memory, all: s.opts.ParseBytes}
	defer room.leave()
	a, err := s.opts.Store.Artifact(ctx, m.Root, s.opts.Limits)
	if err != nil {
		return Description{}, err
	}
	stream, err := s.stream(ctx, a, m, room)
	if err != nil {
		return Description{}, err
	}
	d, index, err := s.metaOf(o, m, stream)
	if err == nil && len(stream) > cheapStream {
		s.remember(ctx, metaKey(m.Root), index)
	}
	return d, err
}

// cheapStream is the size in bytes up to which reading package.yaml again is faster than storing its metadata.
const cheapStream = 64 << 10

// metaOf returns the metadata of a package.yaml. The result does not reference its memory.
func (s *Source) metaOf(o Origin, m oci.Manifest, stream []byte) (Description, *index.Index, error) {
	meta, err := xpkg.ReadMeta(stream, xpkg.ReadOptions{
		File: o.at(m.Root), Policy: o.policy(), Limits: s.opts.FormatLimits,
	})
	if err != nil {
		return Description{}, nil, err
	}
	x, err := index.NewMeta(meta)
	if err != nil {
		return Description{}, nil, err
	}
	meta, err = x.ReadMeta(s.opts.FormatLimits)
	return Description{Digest: m.Root, Meta: meta, Claimed: false}, x, err
}

// remember stores metadata if possible: without a writable cache, metadata is read again.
func (s *Source) remember(ctx context.Context, key store.DerivedKey, x *index.Index) {
	_ = s.opts.Store.PutDerived(ctx, key, index.Encode(x))
}

// Artifact returns the complete content of a digest for copying, including other platforms and runtimes. The content
// is not stored, and readers verify it.
func (s *Source) Artifact(ctx context.Context, o Origin, d oci.Digest) (oci.Artifact, error) {
	return first(ctx, o, func(p Endpoint) (oci.Artifact, error) {
		c, err := s.clients.get(ctx, p)
		if err != nil {
			return nil, err
		}
		return c.remote.Artifact(ctx, p.Ref.WithDigest(d))
	})
}

// Repository returns the repository of an origin itself, not of its mirrors, with a client for it. What belongs to
// content, such as signatures, is complete there.
func (s *Source) Repository(ctx context.Context, o Origin) (*remote.Client, oci.Reference, error) {
	own := Plain(o.Ref).Endpoints[0]
	if len(o.Endpoints) > 0 {
		own = o.Endpoints[len(o.Endpoints)-1]
	}
	c, err := s.clients.get(ctx, own)
	if err != nil {
		return nil, oci.Reference{}, err
	}
	return c.remote, own.Ref, nil
}
