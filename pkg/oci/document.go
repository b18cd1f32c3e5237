package oci

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/text"
)

// ErrInvalidManifest is the code for a manifest or an index that violates the OCI image
// specification.
var ErrInvalidManifest = errcode.Code{
	Name: "InvalidManifest", Class: errcode.Invalid,
	Cause: "A manifest or an index is malformed.",
	Fix:   "Publish the package again with a tool that writes OCI or Docker schema 2 manifests, such as xpkg push.",
}

// ErrNotAPackage is the code for content that is not an image.
var ErrNotAPackage = errcode.Code{
	Name: "NotAPackage", Class: errcode.Invalid,
	Cause: "The reference names content that is not the image of a package, for example a Helm chart or a signature.",
	Fix:   "Check the reference; a package is an OCI or Docker schema 2 image.",
}

// ErrUnexpectedMediaType is the code for content with a media type that differs from
// the announced one or is not allowed in its place.
var ErrUnexpectedMediaType = errcode.Code{
	Name: "UnexpectedMediaType", Class: errcode.Invalid,
	Cause: "A registry or an archive returned content with an unexpected media type.",
	Fix:   "Check that the address belongs to a registry, and that no login page or proxy intercepts the request.",
}

// Document is a manifest or an index as it was written. The content determines the kind:
// Layers and Config belong to a manifest, Manifests to an index.
type Document struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     MediaType         `json:"mediaType,omitempty"`
	ArtifactType  string            `json:"artifactType,omitempty"`
	Config        *Descriptor       `json:"config,omitempty"`
	Layers        []Descriptor      `json:"layers,omitempty"`
	Manifests     []Descriptor      `json:"manifests,omitempty"`
	Subject       *Descriptor       `json:"subject,omitempty"`
	Annotations   map[string]string `json:"annotations,omitempty"`
}

// IsIndex reports whether the document is an index.
func (d *Document) IsIndex() bool {
	return d.MediaType == MediaTypeOCIIndex || d.MediaType == MediaTypeDockerList
}

// ParseDocument parses a manifest or an index. The caller has verified the digest of
// data. The parameter declared is the media type of the descriptor or the registry, or ""
// if there is none. It must match the media type in the document, so that no two readers
// interpret the same bytes differently (CVE-2021-41190).
func ParseDocument(data []byte, declared MediaType, limits Limits) (*Document, error) {
	limits = limits.WithDefaults()
	if int64(len(data)) > limits.Manifest {
		return nil, ErrManifestTooLarge.New(
			nil, "the manifest has %d bytes, at most %d are allowed (--max-manifest-size)", len(data), limits.Manifest,
		)
	}
	if IsDockerSchema1(declared) {
		return nil, ErrNotAPackage.New(nil, "the manifest is of Docker schema 1, which does not verify its content")
	}
	doc, err := decodeDocument(data)
	if err != nil {
		return nil, err
	}
	if err := doc.settleMediaType(declared); err != nil {
		return nil, err
	}
	if err := doc.checkCounts(limits); err != nil {
		return nil, err
	}
	return doc, doc.checkDescriptors()
}

func decodeDocument(data []byte) (*Document, error) {
	var doc Document
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&doc); err != nil {
		return nil, documentError(err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, ErrInvalidManifest.New(nil, "the manifest is followed by other content")
	}
	if doc.SchemaVersion == 1 {
		return nil, ErrNotAPackage.New(nil, "the manifest is of Docker schema 1, which does not verify its content")
	}
	if doc.SchemaVersion != 2 {
		return nil, ErrInvalidManifest.New(nil, "the manifest has schema version %d instead of 2", doc.SchemaVersion)
	}
	return &doc, nil
}

// documentError returns the error of an invalid digest unchanged, because it is more
// specific than the error of the manifest.
func documentError(err error) error {
	for _, code := range []errcode.Code{ErrInvalidDigest, ErrUnsupportedDigest} {
		if errors.Is(err, code) {
			return code.New(err, "cannot read the manifest")
		}
	}
	return ErrInvalidManifest.New(err, "cannot read the manifest")
}

// settleMediaType sets MediaType. It fails if the content, the media type in the document
// and the declared type do not match.
func (d *Document) settleMediaType(declared MediaType) error {
	if d.Manifests != nil && (d.Layers != nil || d.Config != nil) {
		return ErrInvalidManifest.New(nil, "the manifest is both an index and an image")
	}
	if d.MediaType != "" && declared != "" && d.MediaType != declared {
		return ErrUnexpectedMediaType.New(
			nil, "the manifest has the media type %q, but was announced as %q", text.Clip(string(d.MediaType)),
			text.Clip(string(declared)),
		)
	}
	if d.MediaType == "" {
		d.MediaType = declared
	}
	if d.MediaType == "" {
		d.MediaType = d.guessMediaType()
	}
	switch d.MediaType {
	case MediaTypeOCIIndex, MediaTypeDockerList:
		if d.Layers != nil || d.Config != nil {
			return ErrInvalidManifest.New(nil, "the manifest is announced as an index, but has the layers of an image")
		}
	case MediaTypeOCIManifest, MediaTypeDockerManifest:
		if d.Manifests != nil {
			return ErrInvalidManifest.New(nil, "the manifest is announced as an image, but has the manifests of an index")
		}
	default:
		return ErrNotAPackage.New(nil, "the content is %q, which is not an image", text.Clip(string(d.MediaType)))
	}
	return nil
}

// guessMediaType returns the media type of a document that omits it, as the OCI
// specification allows, when no media type was declared.
func (d *Document) guessMediaType() MediaType {
	if d.Manifests != nil {
		return MediaTypeOCIIndex
	}
	if d.Config != nil && d.Config.MediaType == MediaTypeDockerConfig {
		return MediaTypeDockerManifest
	}
	return MediaTypeOCIManifest
}

func (d *Document) checkCounts(limits Limits) error {
	if len(d.Layers) > limits.Layers {
		return ErrManifestTooLarge.New(
			nil, "the manifest has %d layers, at most %d are allowed (--max-layers)", len(d.Layers), limits.Layers,
		)
	}
	if len(d.Manifests) > limits.IndexEntries {
		return ErrManifestTooLarge.New(
			nil, "the index has %d manifests, at most %d are allowed (--max-index-entries)", len(d.Manifests),
			limits.IndexEntries,
		)
	}
	n := len(d.Annotations)
	for _, desc := range d.descriptors() {
		n += len(desc.Annotations)
	}
	if n > limits.Annotations {
		return ErrManifestTooLarge.New(
			nil, "the manifest has %d annotations, at most %d are allowed (--max-annotations)", n, limits.Annotations,
		)
	}
	return nil
}

func (d *Document) checkDescriptors() error {
	if !d.IsIndex() && d.Config == nil {
		return ErrInvalidManifest.New(nil, "the manifest has no config")
	}
	for _, desc := range d.descriptors() {
		if err := desc.check(); err != nil {
			return ErrInvalidManifest.New(err, "a descriptor of the manifest is invalid")
		}
	}
	return nil
}

// descriptors returns the descriptors of the content of the document.
func (d *Document) descriptors() []Descriptor {
	var all []Descriptor
	if d.Config != nil {
		all = append(all, *d.Config)
	}
	all = append(all, d.Layers...)
	return append(all, d.Manifests...)
}

func (d Descriptor) check() error {
	switch {
	case d.Digest.IsZero():
		return fmt.Errorf("%q has no digest", text.Clip(string(d.MediaType)))
	case d.MediaType == "":
		return fmt.Errorf("%s has no media type", d.Digest)
	case d.Size <= 0:
		return fmt.Errorf("%s has a size of %d", d.Digest, d.Size)
	case d.Data != nil && (int64(len(d.Data)) != d.Size || DigestOf(d.Data) != d.Digest):
		return fmt.Errorf("%s has embedded data that does not match its digest", d.Digest)
	}
	return nil
}
