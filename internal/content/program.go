package content

import (
	"context"

	"github.com/xpkg-dev/xpkg/internal/oci"
)

// Exists proves that the image with a digest can be had, and fetches nothing of it but
// its manifest.
func (s *Source) Exists(ctx context.Context, o Origin, d oci.Digest) error {
	_, err := first(ctx, o, func(p Place) (struct{}, error) {
		c, err := s.clients.get(ctx, p)
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, c.remote.Exists(ctx, p.Ref.WithDigest(d))
	})
	return err
}

// FetchProgram brings the whole image of a program into the store, from the first
// place that has it; see [oci.Remote.FetchProgram]. What is in the store already is
// not asked for.
func (s *Source) FetchProgram(ctx context.Context, o Origin, d oci.Digest, platform oci.Platform, limits oci.UnpackLimits) (oci.ProgramImage, error) {
	return first(ctx, o, func(p Place) (oci.ProgramImage, error) {
		c, err := s.clients.get(ctx, p)
		if err != nil {
			return oci.ProgramImage{}, err
		}
		return c.remote.FetchProgram(ctx, p.Ref.WithDigest(d), s.opts.Store, platform, limits)
	})
}

// Store keeps what the source has fetched.
func (s *Source) Store() *oci.Store { return s.opts.Store }
