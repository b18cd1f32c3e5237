package indexer

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// Client fetches indexes. Parts that are in the package cache are not fetched again, so a new state costs its manifest,
// its configuration and its last journal layer.
type Client struct {
	Remote *remote.Client
	Store  *store.Store
	// Offline uses the state of an index that was fetched last.
	Offline bool
	// Keys are public keys of which one must have signed each state that is used; empty verifies no signatures.
	Keys Keys
	// Now returns the time; nil means the system clock.
	Now func() time.Time
	// Warn, if set, receives the reason why a cached state is used although the registry was asked.
	Warn func(err error)
}

// recordKind is the kind of the records with the states of indexes in the package cache.
const recordKind = "index-states"

// state is the newest state of an index that this machine has seen.
type state struct {
	Name     string     `json:"name"`
	Sequence int64      `json:"sequence"`
	Digest   oci.Digest `json:"digest"`
}

// Open returns the index of a reference. It asks the registry for the newest state, compares it with the newest one
// that this machine has seen, and fetches its parts for searching: packages, kinds and journal. It fails with
// ErrStaleIndex, ErrForkedIndex, ErrExpiredIndex or ErrIndexSignature for a state that must not be used. If the
// registry is unavailable, Open returns the state that was fetched last.
func (c *Client) Open(ctx context.Context, ref oci.Reference) (*catalog.Reader, error) {
	seen, err := c.seen(ctx, ref)
	if err != nil {
		return nil, err
	}
	digest := seen.Digest
	if !c.Offline {
		current, err := c.Remote.Resolve(ctx, ref)
		switch {
		case err == nil:
			digest = current.Digest
		case seen.Digest.IsZero() || errcode.From(err).Code.Class != errcode.Unavailable:
			return nil, err
		case c.Warn != nil:
			c.Warn(err)
		}
	}
	if digest.IsZero() {
		return nil, oci.ErrBlobNotFound.New(nil, "index %s was not fetched on this machine", ref).
			WithDo("Run the command once without --offline.")
	}
	return c.open(ctx, ref, seen, digest)
}

// open reads and checks the state with a digest.
func (c *Client) open(ctx context.Context, ref oci.Reference, seen state, digest oci.Digest) (*catalog.Reader, error) {
	if err := c.verify(ctx, ref, digest); err != nil {
		return nil, err
	}
	r, err := c.read(ctx, ref, digest)
	if err != nil {
		return nil, err
	}
	config := r.Config()
	if err := c.check(ctx, ref, seen, r); err != nil {
		return nil, err
	}
	if expires := config.Expires; !expires.IsZero() && c.now().After(expires) {
		return nil, ErrExpiredIndex.New(nil, "index %s expired on %s", ref, expires.Format(time.DateTime))
	}
	if err := r.Prefetch(); err != nil {
		return nil, err
	}
	// A state that is refused must not become the one that this machine has seen.
	if seen.Digest != digest {
		if err := r.Check(); err != nil {
			return nil, err
		}
	}
	return r, c.remember(ref, seen, state{config.Name, config.Sequence, digest})
}

func (c *Client) now() time.Time {
	if c.Now == nil {
		return time.Now()
	}
	return c.Now()
}

// read opens the state with a digest, with the package cache in front of the registry.
func (c *Client) read(ctx context.Context, ref oci.Reference, digest oci.Digest) (*catalog.Reader, error) {
	m, err := c.manifest(ctx, ref, digest)
	if err != nil {
		return nil, err
	}
	return catalog.Open(m, func(d oci.Descriptor) ([]byte, error) { return c.blob(ctx, ref, d) })
}

// maxManifestSize is the size of the manifest of an index in bytes.
const maxManifestSize = 1 << 20

func (c *Client) manifest(ctx context.Context, ref oci.Reference, digest oci.Digest) (catalog.Manifest, error) {
	raw, err := c.Store.Get(ctx, digest, maxManifestSize)
	if err != nil {
		if raw, err = c.fetchManifest(ctx, ref, digest, err); err != nil {
			return catalog.Manifest{}, err
		}
		if _, err := c.Store.PutBytes(ctx, raw); err != nil {
			return catalog.Manifest{}, err
		}
	}
	return catalog.ParseManifest(raw)
}

// fetchManifest returns the manifest from the registry.
func (c *Client) fetchManifest(
	ctx context.Context, ref oci.Reference, digest oci.Digest, missing error,
) ([]byte, error) {
	if c.Offline {
		return nil, missing
	}
	a, err := c.Remote.Artifact(ctx, ref.WithDigest(digest))
	if err != nil {
		return nil, err
	}
	return oci.ReadSmall(ctx, a, a.Root(), oci.Limits{Manifest: maxManifestSize})
}

// blob returns a part of an index, from the package cache or the registry. It fails with ErrTruncatedIndex or
// ErrMixedIndex if the content is not that of the descriptor.
func (c *Client) blob(ctx context.Context, ref oci.Reference, d oci.Descriptor) ([]byte, error) {
	data, err := c.Store.Get(ctx, d.Digest, d.Size)
	if err == nil || c.Offline {
		return data, err
	}
	err = c.Remote.FetchBlobs(ctx, ref, []oci.Descriptor{d}, c.Store)
	switch {
	case errors.Is(err, oci.ErrSizeMismatch):
		return nil, catalog.ErrTruncatedIndex.New(err, "cannot fetch a part of %s", ref)
	case errors.Is(err, oci.ErrDigestMismatch):
		return nil, catalog.ErrMixedIndex.New(err, "cannot fetch a part of %s", ref)
	case err != nil:
		return nil, err
	}
	return c.Store.Get(ctx, d.Digest, d.Size)
}

// maxChain is the number of states between two that a client has seen which it reads to detect a fork.
const maxChain = 32

// check compares a state with the newest one that this machine has seen.
func (c *Client) check(ctx context.Context, ref oci.Reference, seen state, r *catalog.Reader) error {
	is := r.Config()
	digest := r.Manifest().Digest
	switch {
	case seen.Digest.IsZero() || seen.Digest == digest:
		return nil
	case seen.Name != is.Name:
		return refuses(ref, ErrForkedIndex, nil, "%s is the index %q, and was the index %q", ref, is.Name, seen.Name)
	case is.Sequence < seen.Sequence:
		return refuses(
			ref, ErrStaleIndex, nil, "%s has the sequence %d, this machine has seen %d", ref, is.Sequence, seen.Sequence,
		)
	case is.Sequence == seen.Sequence:
		return refuses(ref, ErrForkedIndex, nil, "%s has two states with the sequence %d", ref, is.Sequence)
	}
	return c.checkChain(ctx, ref, seen, is)
}

// refuses returns the error for a state that this machine does not accept, with the command that accepts it.
func refuses(ref oci.Reference, code errcode.Code, cause error, format string, args ...any) error {
	return code.New(cause, format, args...).
		WithDo("%s: `xpkg index show %s --forget`.", strings.TrimSuffix(code.Fix, "."), ref)
}

// checkChain reads the states before one, down to the one that was seen. A registry may have deleted them; then only
// the sequence is known to have grown.
func (c *Client) checkChain(ctx context.Context, ref oci.Reference, seen state, is catalog.Config) error {
	for range maxChain {
		if is.Sequence == seen.Sequence+1 {
			if is.Previous != seen.Digest {
				return refuses(
					ref, ErrForkedIndex, nil, "the state %d of %s does not continue the state which this machine has seen",
					is.Sequence, ref,
				)
			}
			return nil
		}
		m, err := c.manifest(ctx, ref, is.Previous)
		if err != nil {
			return nil //nolint:nilerr // The state is not in the registry any more.
		}
		text, err := c.blob(ctx, ref, m.Config)
		if err != nil {
			return nil //nolint:nilerr // The state is not in the registry any more.
		}
		before, err := catalog.ParseConfig(text)
		if err != nil || before.Sequence != is.Sequence-1 {
			return refuses(
				ref, ErrForkedIndex, err, "the state before %d of %s is not the state %d", is.Sequence, ref, is.Sequence-1,
			)
		}
		is = before
	}
	return nil
}

// seen returns the newest state that this machine has seen, and the zero value if there is none.
func (c *Client) seen(ctx context.Context, ref oci.Reference) (state, error) {
	record, err := c.Store.GetRecord(ctx, recordKind, ref.String())
	if errors.Is(err, oci.ErrBlobNotFound) {
		return state{}, nil
	}
	if err != nil {
		return state{}, err
	}
	var s state
	if err := json.Unmarshal(record.Data, &s); err != nil {
		return state{}, nil //nolint:nilerr // A damaged record is as none: there is nothing to compare with.
	}
	return s, nil
}

// remember records a state.
func (c *Client) remember(ref oci.Reference, seen, is state) error {
	if seen == is {
		return nil
	}
	text, err := json.Marshal(is)
	if err != nil {
		return err
	}
	return c.Store.PutRecord(store.Record{Kind: recordKind, Name: ref.String(), Data: text})
}

// Seen returns the newest state of an index with a name that this machine has seen; zero if there is none.
func (c *Client) Seen(ctx context.Context, ref oci.Reference, name string) (Replaced, error) {
	seen, err := c.seen(ctx, ref)
	if err != nil || seen.Name != name {
		return Replaced{}, err
	}
	return Replaced{seen.Sequence, seen.Digest}, nil
}

// Published records a state that this machine has published, so that it is the newest one that it has seen, and keeps
// its content in the package cache.
func (c *Client) Published(ctx context.Context, ref oci.Reference, image *catalog.Image) error {
	if _, err := c.Store.PutBytes(ctx, image.Manifest.Raw); err != nil {
		return err
	}
	for _, b := range image.Blobs {
		if _, err := c.Store.PutBytes(ctx, b.Data); err != nil {
			return err
		}
	}
	text, err := c.Store.Get(ctx, image.Manifest.Config.Digest, image.Manifest.Config.Size)
	if err != nil {
		return err
	}
	config, err := catalog.ParseConfig(text)
	if err != nil {
		return err
	}
	return c.remember(ref, state{}, state{config.Name, config.Sequence, image.Manifest.Digest})
}

// Forget removes the record of the newest state of an index that this machine has seen. The next state is then accepted
// without a comparison.
func (c *Client) Forget(ref oci.Reference) error {
	return c.Store.RemoveRecord(store.Record{Kind: recordKind, Name: ref.String()})
}
