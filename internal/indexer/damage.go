package indexer

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// IsDamaged reports whether an error means that the registry does not have all of the content of a state of an index,
// or other content.
func IsDamaged(err error) bool {
	damage := []errcode.Code{
		catalog.ErrInvalidIndex, catalog.ErrMixedIndex, catalog.ErrTruncatedIndex, oci.ErrBlobMissing,
		oci.ErrManifestNotFound,
	}
	return slices.ContainsFunc(damage, func(c errcode.Code) bool { return errors.Is(err, c) })
}

// VerifyStored fails if the registry does not have all of the content of a state of an index. It reads all of it from
// the registry, whatever the package cache has.
func (c *Client) VerifyStored(ctx context.Context, ref oci.Reference, m *catalog.Manifest) (err error) {
	dir, err := os.MkdirTemp("", "xpkg-index-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	empty, err := store.Open(dir, store.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, empty.Close()) }()
	stored := Client{Remote: c.Remote, Store: empty}
	if _, err := stored.manifest(ctx, ref, m.Digest); err != nil {
		return err
	}
	for _, d := range append([]oci.Descriptor{m.Config}, m.Layers()...) {
		if _, err := stored.blob(ctx, ref, d); err != nil {
			return err
		}
	}
	return nil
}

// Last returns the manifest and the configuration of the newest state of an index that the registry has or this machine
// has seen, for an index whose current state cannot be used. It fails with ErrIndexNotFound if neither has a
// configuration.
func (c *Client) Last(ctx context.Context, ref oci.Reference) (catalog.Manifest, catalog.Config, error) {
	seen, err := c.seen(ctx, ref)
	if err != nil {
		return catalog.Manifest{}, catalog.Config{}, err
	}
	current, err := c.Remote.Resolve(ctx, ref)
	if err != nil && !IsAbsent(err) {
		return catalog.Manifest{}, catalog.Config{}, err
	}
	if err == nil {
		m, config, err := readState(ctx, c.Remote, ref.WithDigest(current.Digest))
		if err == nil && (seen.Digest.IsZero() || config.Name == seen.Name && config.Sequence >= seen.Sequence) {
			return m, config, nil
		}
	}
	if !seen.Digest.IsZero() {
		cached := Client{Store: c.Store, Offline: true}
		if m, err := cached.manifest(ctx, ref, seen.Digest); err == nil {
			if text, err := cached.blob(ctx, ref, m.Config); err == nil {
				config, err := catalog.ParseConfig(text)
				return m, config, err
			}
		}
	}
	return catalog.Manifest{}, catalog.Config{},
		ErrIndexNotFound.New(nil, "neither the registry nor this machine has the configuration of the index %s", ref).
			WithDo("Build it with `xpkg index build %s` and its sources.", ref)
}
