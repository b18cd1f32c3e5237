package oci

import (
	"bytes"
	"context"
	"errors"
	"io"
)

// Artifact is content that starts at one descriptor: an image with its
// configuration and layers, or an index with its images. Its digest is that of
// the root, wherever the artifact is.
type Artifact interface {
	// Root is the manifest or index that everything else hangs from.
	Root() Descriptor
	// Open gives the bytes that a descriptor of the artifact names. Readers
	// verify what they get; see [ReadDocument] and [Copy].
	Open(ctx context.Context, d Descriptor) (io.ReadCloser, error)
}

// source opens content that an artifact holds, as often as it is asked to.
type source func(ctx context.Context) (io.ReadCloser, error)

func bytesSource(data []byte) source {
	return func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(data)), nil
	}
}

// content is an artifact of named sources, and of other artifacts that have what
// the sources lack.
type content struct {
	root    Descriptor
	sources map[Digest]source
	parts   []Artifact
}

// Root implements [Artifact].
func (c *content) Root() Descriptor { return c.root }

// Digest is the digest that a push of the artifact gives.
func (c *content) Digest() Digest { return c.root.Digest }

// Open implements [Artifact].
func (c *content) Open(ctx context.Context, d Descriptor) (io.ReadCloser, error) {
	if open, ok := c.sources[d.Digest]; ok {
		return open(ctx)
	}
	for _, part := range c.parts {
		if r, err := part.Open(ctx, d); !absent(err) {
			return r, err
		}
	}
	return nil, ErrBlobNotFound.New(nil, "%s is not part of %s", d.Digest, c.root.Digest.Short())
}

// absent says that a part of an artifact, in a store or in a registry, does not
// have what it was asked for.
func absent(err error) bool {
	return ErrBlobNotFound.Is(err) || ErrBlobMissing.Is(err) || ErrManifestNotFound.Is(err)
}

func (c *content) add(d Digest, s source) {
	if c.sources == nil {
		c.sources = map[Digest]source{}
	}
	c.sources[d] = s
}

// ReadDocument gives a manifest or index of an artifact, and its bytes, after its
// whole digest has been verified.
func ReadDocument(ctx context.Context, a Artifact, d Descriptor, limits Limits) ([]byte, *Document, error) {
	limits = limits.WithDefaults()
	raw, err := readSmall(ctx, a, d, limits)
	if err != nil {
		return nil, nil, err
	}
	doc, err := ParseDocument(raw, d.MediaType, limits)
	return raw, doc, err
}

// readSmall gives verified content that is held in memory: manifests and
// configurations.
func readSmall(ctx context.Context, a Artifact, d Descriptor, limits Limits) (data []byte, err error) {
	if d.Size > limits.Manifest {
		return nil, ErrManifestTooLarge.New(nil, "%s has %d bytes and may have %d (--max-manifest-size)", d.Digest, d.Size, limits.Manifest)
	}
	r, err := a.Open(ctx, d)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return readVerified(r, d)
}

// maxIndexDepth is how many indexes can stand above an image.
const maxIndexDepth = 2

// walk visits everything that an artifact is made of, each content once, and
// whatever a document needs before the document itself. Manifests of kinds that
// are not images are visited too: a copy keeps them.
func walk(ctx context.Context, a Artifact, limits Limits, visit visitor) error {
	w := walker{artifact: a, limits: limits.WithDefaults(), visit: visit, seen: map[Digest]bool{}}
	return w.document(ctx, a.Root(), 0)
}

// visitor is called with a blob, or with a document and its bytes.
type visitor func(ctx context.Context, d Descriptor, raw []byte) error

type walker struct {
	artifact Artifact
	limits   Limits
	visit    visitor
	seen     map[Digest]bool
}

func (w *walker) document(ctx context.Context, d Descriptor, depth int) error {
	if w.seen[d.Digest] {
		return nil
	}
	w.seen[d.Digest] = true
	raw, err := readSmall(ctx, w.artifact, d, w.limits)
	if err != nil {
		return err
	}
	doc, err := parseForCopy(raw, d.MediaType, w.limits)
	if err != nil {
		return err
	}
	if len(doc.Manifests) > 0 && depth >= maxIndexDepth {
		return ErrIndexTooDeep.New(nil, "index %s lies under %d others", d.Digest.Short(), depth)
	}
	for _, child := range doc.Manifests {
		if err := w.document(ctx, child, depth+1); err != nil {
			return err
		}
	}
	if err := w.blobs(ctx, doc); err != nil {
		return err
	}
	return w.visit(ctx, d, raw)
}

func (w *walker) blobs(ctx context.Context, doc *Document) error {
	all := doc.Layers
	if doc.Config != nil {
		all = append([]Descriptor{*doc.Config}, all...)
	}
	for _, blob := range all {
		// What a registry may not distribute stays where it is.
		if w.seen[blob.Digest] || !blob.MediaType.IsDistributable() {
			continue
		}
		w.seen[blob.Digest] = true
		if err := w.visit(ctx, blob, nil); err != nil {
			return err
		}
	}
	return nil
}

// parseForCopy reads a document of any kind as far as moving it needs.
func parseForCopy(raw []byte, declared MediaType, limits Limits) (*Document, error) {
	if isSchema1(declared) {
		return nil, ErrNotAPackage.New(nil, "the manifest is of Docker schema 1, which does not protect its content")
	}
	doc, err := decodeDocument(raw)
	if err != nil {
		return nil, err
	}
	if err := doc.checkCounts(limits); err != nil {
		return nil, err
	}
	for _, d := range doc.descriptors() {
		if err := d.check(); err != nil {
			return nil, ErrInvalidManifest.New(err, "a descriptor of the manifest is wrong")
		}
	}
	return doc, nil
}
