package fetch

import (
	"context"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// describeTag resolves a tag and reads its content. A small package is read in memory, and written into the store in
// the background, so that sequential requests do not wait for the disk.
func (s *Source) describeTag(ctx context.Context, c *client, o Origin, ref oci.Reference) (Description, error) {
	a, err := c.remote.Artifact(ctx, ref)
	if err != nil {
		return Description{}, err
	}
	read := &bufferedArtifact{Artifact: a, bytes: map[oci.Digest][]byte{}}
	m, err := oci.FindManifest(ctx, read, oci.Platform{}, s.opts.Limits)
	if err != nil {
		return Description{}, err
	}
	// Of several callers that resolve to the same content, one reads it, and the others find it in the store.
	leave, err := s.describing.Lock(ctx, m.Root)
	if err != nil {
		return Description{}, err
	}
	d, write, err := s.describeManifest(ctx, c, o, ref.WithDigest(m.Root), read, m)
	if !write {
		leave()
		return d, err
	}
	s.writes.Go(func() {
		defer leave()
		ctx := context.WithoutCancel(ctx)
		// Without a writable cache, packages are read again.
		if _, _, err := s.opts.Store.AddPackage(ctx, read, s.opts.Limits); err == nil {
			s.noteOrigin(ctx, o.Ref, m.Root)
		}
	})
	return d, nil
}

// describeManifest reads the package of a manifest. Write selects whether the content is written into the store.
func (s *Source) describeManifest(
	ctx context.Context, c *client, o Origin, ref oci.Reference, read *bufferedArtifact, m oci.Manifest,
) (d Description, write bool, err error) {
	if known, ok := s.described(ctx, o, m.Root); ok {
		return known, false, nil
	}
	if known, err := s.atHand(ctx, o, m.Root); err == nil {
		return known, false, nil
	}
	if m.Base == nil || m.Base.Size > smallLayer {
		if err := read.keep(ctx, s.opts.Store); err != nil {
			return Description{}, false, err
		}
		d, err := s.describeDigest(ctx, c, o, ref, smallLayer)
		return d, false, err
	}
	room := &room{memory: s.memory, all: s.opts.ParseBytes}
	defer room.leave()
	stream, err := s.stream(ctx, read, m, room)
	if err != nil {
		return Description{}, false, err
	}
	d, _, err = s.metaOf(o, m, stream)
	return d, err == nil, err
}
