package remote

import (
	"context"
	"io"

	"golang.org/x/sync/errgroup"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/assembly"
	"github.com/xpkg-dev/xpkg/pkg/oci/store"
)

// FetchOptions configures a fetch.
type FetchOptions struct {
	// Platform selects an image of an index; zero means linux/amd64.
	Platform oci.Platform
}

// Fetch stores the content that is necessary to read a package: the manifests on the path
// to the image, and the layer with package.yaml. Without an annotated layer it fetches
// the layers from the top until one has the file. The reference must have a digest; see
// [Client.Resolve].
//
// Fetch makes no request for content that is in the store. The store verifies all content
// as a whole before it is read.
func (r *Client) Fetch(
	ctx context.Context, ref oci.Reference, store *store.Store, opts FetchOptions,
) (oci.Manifest, error) {
	if ref.Digest.IsZero() {
		return oci.Manifest{}, oci.ErrInvalidReference.New(nil, "reference %s has no digest to fetch", ref)
	}
	m, err := r.FetchManifest(ctx, ref, store, opts)
	if err != nil {
		return oci.Manifest{}, err
	}
	a := &fetched{remote: r, ref: ref, store: store, root: oci.Descriptor{Digest: m.Root}}
	return m, oci.OpenPackageLayers(ctx, a, m, r.opts.Limits)
}

// FetchManifest stores the manifests on the path to the image of a package, without
// layers. For a reference with only a tag, the request for the manifest also resolves the
// tag: one request for an image, instead of the two of [Client.Resolve] and
// [Client.Fetch].
func (r *Client) FetchManifest(
	ctx context.Context, ref oci.Reference, store *store.Store, opts FetchOptions,
) (oci.Manifest, error) {
	a, err := r.into(ctx, ref, store)
	if err != nil {
		return oci.Manifest{}, err
	}
	return oci.FindManifest(ctx, a, opts.Platform, r.opts.Limits)
}

// FetchLayer stores one layer of a manifest unless it is in the store. The layer has the
// same size limit as the annotated layer of a package.
func (r *Client) FetchLayer(
	ctx context.Context, ref oci.Reference, m oci.Manifest, layer oci.Descriptor, store *store.Store,
) error {
	if err := oci.CheckLayerSize(m, layer, r.opts.Limits); err != nil {
		return err
	}
	a := &fetched{remote: r, ref: ref, store: store}
	blob, err := a.Open(ctx, layer)
	if err != nil {
		return err
	}
	return blob.Close()
}

// FetchBlobs stores content of an image unless it is in the store, with up to three
// concurrent downloads. It does not limit sizes: the caller has compared them with its
// own limits.
func (r *Client) FetchBlobs(ctx context.Context, ref oci.Reference, blobs []oci.Descriptor, store *store.Store) error {
	a := &fetched{remote: r, ref: ref, store: store}
	downloads, ctx := errgroup.WithContext(ctx)
	downloads.SetLimit(maxConcurrentBlobs)
	for _, d := range blobs {
		downloads.Go(func() error {
			if store.Has(d.Digest) {
				return nil
			}
			return a.fetchOnce(ctx, d)
		})
	}
	return downloads.Wait()
}

// maxConcurrentBlobs is the number of blobs that FetchBlobs downloads at a time.
const maxConcurrentBlobs = 3

// Cached returns the artifact at a reference. It stores the root; Open stores further
// content before it returns it.
func (r *Client) Cached(ctx context.Context, ref oci.Reference, store *store.Store) (oci.VerifiedArtifact, error) {
	return r.into(ctx, ref, store)
}

// Limits returns the limits of the client.
func (r *Client) Limits() oci.Limits { return r.opts.Limits }

// fetched is an artifact of a registry that is read through a store.
type fetched struct {
	remote *Client
	ref    oci.Reference
	store  *store.Store
	root   oci.Descriptor
}

// into returns the artifact at a digest or tag, and stores its root.
func (r *Client) into(ctx context.Context, ref oci.Reference, store *store.Store) (*fetched, error) {
	a := &fetched{remote: r, ref: ref, store: store}
	if !ref.Digest.IsZero() {
		if kept, err := store.Artifact(ctx, ref.Digest, r.opts.Limits); err == nil {
			a.root = kept.Root()
			return a, nil
		}
	}
	raw, d, err := r.getManifest(ctx, ref)
	if err != nil {
		return nil, err
	}
	a.root = d
	_, err = store.PutBytes(ctx, raw)
	return a, err
}

// Root implements [oci.Artifact].
func (a *fetched) Root() oci.Descriptor { return a.root }

// Open implements [oci.Artifact]: content that is not in the store is fetched first.
func (a *fetched) Open(ctx context.Context, d oci.Descriptor) (io.ReadCloser, error) {
	if r, err := a.store.Open(ctx, d.Digest); err == nil {
		return r, nil
	}
	if err := a.fetchOnce(ctx, d); err != nil {
		return nil, err
	}
	return a.store.Open(ctx, d.Digest)
}

// fetchOnce waits for concurrent fetches of the same content, and fetches it if they
// failed.
func (a *fetched) fetchOnce(ctx context.Context, d oci.Descriptor) error {
	leave, err := a.remote.fetching.Lock(ctx, d.Digest)
	if err != nil {
		return err
	}
	defer leave()
	if a.store.Has(d.Digest) {
		return nil
	}
	return a.fetch(ctx, d)
}

// OpenVerified implements [oci.VerifiedArtifact]: the store verifies each blob that
// it opens.
func (a *fetched) OpenVerified(ctx context.Context, d oci.Descriptor) (io.ReadCloser, error) {
	return a.Open(ctx, d)
}

func (a *fetched) fetch(ctx context.Context, d oci.Descriptor) error {
	if d.MediaType.IsImage() || d.MediaType.IsIndex() {
		raw, got, err := a.remote.getManifest(ctx, a.ref.WithDigest(d.Digest))
		if err != nil {
			return err
		}
		if got.MediaType != d.MediaType {
			return oci.ErrUnexpectedMediaType.New(
				nil, "manifest %s is %q in its index, but %q at registry %s", d.Digest.Short(), d.MediaType, got.MediaType,
				a.ref.Registry,
			)
		}
		_, err = a.store.PutBytes(ctx, raw)
		return err
	}
	r, err := a.remote.openBlob(ctx, a.ref, d)
	if err != nil {
		return err
	}
	defer r.Close()
	return a.store.Put(ctx, d.Digest, d.Size, r)
}

// Artifact returns the artifact at a reference without storing it, for example for a
// copy. The caller verifies the content. See [oci.Copy].
func (r *Client) Artifact(ctx context.Context, ref oci.Reference) (oci.Artifact, error) {
	raw, d, err := r.getManifest(ctx, ref)
	if err != nil {
		return nil, err
	}
	return &remoteArtifact{remote: r, ref: ref, root: d, raw: raw}, nil
}

type remoteArtifact struct {
	remote *Client
	ref    oci.Reference
	root   oci.Descriptor
	raw    []byte
}

func (a *remoteArtifact) Root() oci.Descriptor { return a.root }

func (a *remoteArtifact) Open(ctx context.Context, d oci.Descriptor) (io.ReadCloser, error) {
	switch {
	case d.Digest == a.root.Digest:
		return assembly.BytesSource(a.raw)(ctx)
	case d.MediaType.IsImage() || d.MediaType.IsIndex():
		raw, _, err := a.remote.getManifest(ctx, a.ref.WithDigest(d.Digest))
		if err != nil {
			return nil, err
		}
		return assembly.BytesSource(raw)(ctx)
	}
	return a.remote.openBlob(ctx, a.ref, d)
}
