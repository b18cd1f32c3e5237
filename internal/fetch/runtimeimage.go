package fetch

import (
	"context"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
	"github.com/xpkg-dev/xpkg/pkg/oci/unpack"
)

// Exists checks that the image with a digest is available. It fetches only its manifest.
func (s *Source) Exists(ctx context.Context, o Origin, d oci.Digest) error {
	_, err := first(ctx, o, func(p Endpoint) (struct{}, error) {
		c, err := s.clients.get(ctx, p)
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, c.remote.Exists(ctx, p.Ref.WithDigest(d))
	})
	return err
}

// FetchRuntimeImage fetches the complete image of a runtime into the store, from the first location that has it; see
// [remote.Client.FetchRuntimeImage]. Stored content is not requested. The image has the signatures that the origin
// requires.
func (s *Source) FetchRuntimeImage(
	ctx context.Context, o Origin, d oci.Digest, platform oci.Platform, limits unpack.Limits,
) (unpack.RuntimeImage, error) {
	if _, err := s.Verify(ctx, o, d, true); err != nil {
		return unpack.RuntimeImage{}, err
	}
	return first(ctx, o, func(p Endpoint) (unpack.RuntimeImage, error) {
		c, err := s.clients.get(ctx, p)
		if err != nil {
			return unpack.RuntimeImage{}, err
		}
		return unpack.Fetch(ctx, c.remote, p.Ref.WithDigest(d), s.opts.Store, platform, limits)
	})
}

// RuntimeConfig returns the configuration of a runtime image, like FetchRuntimeImage, but fetches no layer.
func (s *Source) RuntimeConfig(
	ctx context.Context, o Origin, d oci.Digest, platform oci.Platform,
) (unpack.RuntimeConfig, error) {
	if _, err := s.Verify(ctx, o, d, true); err != nil {
		return unpack.RuntimeConfig{}, err
	}
	return first(ctx, o, func(p Endpoint) (unpack.RuntimeConfig, error) {
		c, err := s.clients.get(ctx, p)
		if err != nil {
			return unpack.RuntimeConfig{}, err
		}
		image, err := unpack.Describe(ctx, c.remote, p.Ref.WithDigest(d), s.opts.Store, platform, unpack.Limits{})
		return image.Config, err
	})
}

// Store returns the store of the source.
func (s *Source) Store() *store.Store { return s.opts.Store }
