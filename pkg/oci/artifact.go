package oci

import (
	"context"
	"errors"
	"io"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrBlobNotFound is the code for content that is not in the store.
var ErrBlobNotFound = errcode.Code{
	Name: "BlobNotFound", Class: errcode.NotFound,
	Cause: "The requested digest was not found here.",
	Fix:   "Fetch the package again; with the pull policy Never, add the package to the cache first.",
}

// ErrBlobMissing is the code for a blob that a manifest names and the
// registry does not have.
var ErrBlobMissing = errcode.Code{
	Name: "BlobMissing", Class: errcode.NotFound,
	Cause: "A registry has the manifest of a package, but not all of its content.",
	Fix:   "Publish the package again; the registry may have removed content that was still in use.",
}

// ErrManifestNotFound is the code for a digest that a repository does not have.
var ErrManifestNotFound = errcode.Code{
	Name: "ManifestNotFound", Class: errcode.NotFound,
	Cause: "The repository has no content with this digest; it may have been deleted.",
	Fix:   "Resolve the tag again, or push the content to the repository again.",
}

// Artifact is content below one root descriptor: an image with its configuration and
// layers, or an index with its images. The digest of an artifact is the digest of its
// root, wherever the artifact is.
type Artifact interface {
	// Root returns the descriptor of the top manifest or index.
	Root() Descriptor
	// Open returns the bytes of a descriptor of the artifact. The caller verifies them;
	// see [ReadDocument] and [Copy].
	Open(ctx context.Context, d Descriptor) (io.ReadCloser, error)
}

// Partial is an artifact without some of the manifests that its indexes list, such as those of other platforms.
type Partial interface {
	Artifact
	// Omits reports whether the artifact does not contain a manifest that an index lists.
	Omits(d Descriptor) bool
}

// omits reports whether an artifact is partial and omits a manifest.
func omits(a Artifact, d Descriptor) bool {
	p, ok := a.(Partial)
	return ok && p.Omits(d)
}

// ReadDocument returns a manifest or index of an artifact, and its bytes, after it
// verifies the whole digest.
func ReadDocument(ctx context.Context, a Artifact, d Descriptor, limits Limits) ([]byte, *Document, error) {
	limits = limits.WithDefaults()
	raw, err := ReadSmall(ctx, a, d, limits)
	if err != nil {
		return nil, nil, err
	}
	doc, err := ParseDocument(raw, d.MediaType, limits)
	return raw, doc, err
}

// ReadSmall returns the verified content that d names, for manifests and configurations,
// which are read into memory. It fails with ErrManifestTooLarge if d is larger than
// limits.Manifest.
func ReadSmall(ctx context.Context, a Artifact, d Descriptor, limits Limits) (data []byte, err error) {
	limits = limits.WithDefaults()
	if d.Size > limits.Manifest {
		return nil, ErrManifestTooLarge.New(
			nil, "%s has %d bytes, at most %d are allowed (--max-manifest-size)", d.Digest, d.Size, limits.Manifest,
		)
	}
	r, err := a.Open(ctx, d)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return readVerified(r, d)
}

// maxIndexDepth is the maximum number of nested indexes above an image.
const maxIndexDepth = 2

// Walk calls visit for all content of an artifact, once for each digest. It visits the
// content of a manifest or an index before the manifest or index itself, so the root is
// last. It also visits manifests that are not images, because a copy keeps them, and
// omits nondistributable layers, and what a [Partial] artifact omits.
func Walk(ctx context.Context, a Artifact, limits Limits, visit Visitor) error {
	w := walker{artifact: a, limits: limits.WithDefaults(), visit: visit, seen: map[Digest]bool{}}
	return w.document(ctx, a.Root(), 0)
}

// Visitor is called by [Walk] with the descriptor of a blob and nil, or with the
// descriptor of a manifest or index and its verified bytes.
type Visitor func(ctx context.Context, d Descriptor, raw []byte) error

type walker struct {
	artifact Artifact
	limits   Limits
	visit    Visitor
	seen     map[Digest]bool
}

func (w *walker) document(ctx context.Context, d Descriptor, depth int) error {
	if w.seen[d.Digest] {
		return nil
	}
	w.seen[d.Digest] = true
	raw, err := ReadSmall(ctx, w.artifact, d, w.limits)
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
		if omits(w.artifact, child) {
			continue
		}
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
		// Layers that a registry must not distribute are not copied.
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

// parseForCopy parses a document of any kind as far as a copy requires.
func parseForCopy(raw []byte, declared MediaType, limits Limits) (*Document, error) {
	if IsDockerSchema1(declared) {
		return nil, ErrNotAPackage.New(nil, "the manifest is of Docker schema 1, which does not verify its content")
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
			return nil, ErrInvalidManifest.New(err, "a descriptor of the manifest is invalid")
		}
	}
	return doc, nil
}
