package oci

import (
	"context"
	"io"
)

// FetchOptions changes what is fetched.
type FetchOptions struct {
	// Platform chooses among several; linux/amd64 when it is zero.
	Platform Platform
}

// Fetch brings into the store what is needed to read a package, and no more: the
// manifests on the way to the image, and the layer with package.yaml. Without an
// annotated layer it fetches the layers from the top until one of them has the
// file. The reference needs a digest; see [Remote.Resolve].
//
// What the store has already is not asked for. Each content is in the store, and
// so verified as a whole, before anything reads it.
func (r *Remote) Fetch(ctx context.Context, ref Reference, store *Store, opts FetchOptions) (Manifest, error) {
	if ref.Digest.IsZero() {
		return Manifest{}, ErrInvalidReference.New(nil, "reference %s has no digest to fetch", ref)
	}
	m, err := r.FetchManifest(ctx, ref, store, opts)
	if err != nil {
		return Manifest{}, err
	}
	if m.Base != nil {
		return m, r.FetchLayer(ctx, ref, m, *m.Base, store)
	}
	a := &fetched{remote: r, ref: ref, store: store, root: Descriptor{Digest: m.Root}}
	// Reading the file is what tells how many layers are needed.
	_, err = packageYAML(ctx, a, m, r.opts.Limits)
	return m, err
}

// FetchManifest brings into the store the manifests on the way to the image of a
// package, and none of its layers. A reference with nothing but a tag is resolved
// by the request that gets its manifest: for an image that is one request, where
// [Remote.Resolve] and [Remote.Fetch] make two.
func (r *Remote) FetchManifest(ctx context.Context, ref Reference, store *Store, opts FetchOptions) (Manifest, error) {
	a, err := r.into(ctx, ref, store)
	if err != nil {
		return Manifest{}, err
	}
	return FindManifest(ctx, a, opts.Platform, r.opts.Limits)
}

// FetchLayer brings one layer of a manifest into the store, unless it is there. The
// layer may have as many bytes as the annotated layer of a package.
func (r *Remote) FetchLayer(ctx context.Context, ref Reference, m Manifest, layer Descriptor, store *Store) error {
	a := &fetched{remote: r, ref: ref, store: store}
	return a.fetchLayer(ctx, layer, newBudget(m, r.opts.Limits))
}

// fetched is an artifact of a registry whose content goes through a store.
type fetched struct {
	remote *Remote
	ref    Reference
	store  *Store
	root   Descriptor
}

// into gives the artifact at a digest or tag. Its root is in the store afterwards.
func (r *Remote) into(ctx context.Context, ref Reference, store *Store) (*fetched, error) {
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

// Root implements [Artifact].
func (a *fetched) Root() Descriptor { return a.root }

// Open implements [Artifact]: content that the store lacks is fetched first.
func (a *fetched) Open(ctx context.Context, d Descriptor) (io.ReadCloser, error) {
	if r, err := a.store.Open(ctx, d.Digest); err == nil {
		return r, nil
	}
	if err := a.fetchOnce(ctx, d); err != nil {
		return nil, err
	}
	return a.store.Open(ctx, d.Digest)
}

// fetchOnce waits for others that fetch the same content, and fetches it if they
// did not get it.
func (a *fetched) fetchOnce(ctx context.Context, d Descriptor) error {
	leave, err := a.remote.flights.enter(ctx, d.Digest)
	if err != nil {
		return err
	}
	defer leave()
	if a.store.Has(d.Digest) {
		return nil
	}
	return a.fetch(ctx, d)
}

// open implements blobs.
func (a *fetched) open(ctx context.Context, d Descriptor) (io.ReadCloser, error) {
	return a.Open(ctx, d)
}

func (a *fetched) fetchLayer(ctx context.Context, d Descriptor, b budget) error {
	if err := b.spend(d); err != nil {
		return err
	}
	r, err := a.Open(ctx, d)
	if err != nil {
		return err
	}
	return r.Close()
}

func (a *fetched) fetch(ctx context.Context, d Descriptor) error {
	if d.MediaType.IsImage() || d.MediaType.IsIndex() {
		raw, got, err := a.remote.getManifest(ctx, a.ref.WithDigest(d.Digest))
		if err != nil {
			return err
		}
		if got.MediaType != d.MediaType {
			return ErrUnexpectedMediaType.New(nil, "manifest %s is %q in its index and %q at registry %s", d.Digest.Short(), d.MediaType, got.MediaType, a.ref.Registry)
		}
		_, err = a.store.PutBytes(ctx, raw)
		return err
	}
	r, err := a.remote.openBlob(ctx, a.ref, d)
	if err != nil {
		return err
	}
	defer r.Close() //nolint:errcheck // Put has seen the end of it, or says why not.
	return a.store.Put(ctx, d.Digest, d.Size, r)
}

// Artifact gives everything at a reference for reading in place, for example to
// copy it. Nothing is kept; whoever reads verifies. See [Copy].
func (r *Remote) Artifact(ctx context.Context, ref Reference) (Artifact, error) {
	raw, d, err := r.getManifest(ctx, ref)
	if err != nil {
		return nil, err
	}
	return &remoteArtifact{remote: r, ref: ref, root: d, raw: raw}, nil
}

type remoteArtifact struct {
	remote *Remote
	ref    Reference
	root   Descriptor
	raw    []byte
}

func (a *remoteArtifact) Root() Descriptor { return a.root }

func (a *remoteArtifact) Open(ctx context.Context, d Descriptor) (io.ReadCloser, error) {
	switch {
	case d.Digest == a.root.Digest:
		return bytesSource(a.raw)(ctx)
	case d.MediaType.IsImage() || d.MediaType.IsIndex():
		raw, _, err := a.remote.getManifest(ctx, a.ref.WithDigest(d.Digest))
		if err != nil {
			return nil, err
		}
		return bytesSource(raw)(ctx)
	}
	return a.remote.openBlob(ctx, a.ref, d)
}
