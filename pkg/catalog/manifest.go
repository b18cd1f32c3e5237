package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// ArtifactType is the artifact type of the manifest of an index.
const ArtifactType = "application/vnd.xpkg.index.v1+json"

// Media types of the parts of an index.
const (
	MediaTypeConfig   oci.MediaType = "application/vnd.xpkg.index.config.v1+json"
	MediaTypePackages oci.MediaType = "application/vnd.xpkg.index.packages.v1+zstd"
	MediaTypeKinds    oci.MediaType = "application/vnd.xpkg.index.kinds.v1+zstd"
	MediaTypeHistory  oci.MediaType = "application/vnd.xpkg.index.history.v1+zstd"
	MediaTypeText     oci.MediaType = "application/vnd.xpkg.index.text.v1+zstd"
	MediaTypeJournal  oci.MediaType = "application/vnd.xpkg.index.journal.v1+zstd"
)

// Limits of the parts of an index in bytes. The size of a layer is limited before it is fetched, and its content before
// it is decompressed.
const (
	maxManifest   = 1 << 20
	maxConfigSize = 1 << 20
	maxLayers     = 100
	maxLayerSize  = 256 << 20
	maxPackages   = 32 << 20
	maxShard      = 16 << 20
	maxText       = 128 << 20
	maxJournal    = 32 << 20 // of all journal layers
	maxLine       = 1 << 20  // of a row
	maxLongLine   = 16 << 20 // of an event or a text
)

// A Blob is the content of a descriptor.
type Blob struct {
	oci.Descriptor
	Data []byte
}

func newBlob(mediaType oci.MediaType, data []byte) Blob {
	return Blob{oci.Descriptor{MediaType: mediaType, Digest: oci.DigestOf(data), Size: int64(len(data))}, data}
}

// An Image is an encoded index: the manifest, and the blobs that are new. Blobs of a former state are not repeated.
type Image struct {
	Manifest Manifest
	Blobs    []Blob
}

// A Manifest is the manifest of an index.
type Manifest struct {
	Config, Packages, Kinds oci.Descriptor
	// Shards are the history layers.
	Shards []oci.Descriptor
	// Text is nil for an index without texts.
	Text *oci.Descriptor
	// Journal are the journal layers, oldest first. All but the last one are sealed.
	Journal []oci.Descriptor
	// Raw is the JSON, and Digest its digest.
	Raw    []byte
	Digest oci.Digest
}

// wireManifest is the canonical JSON of a manifest.
type wireManifest struct {
	SchemaVersion int              `json:"schemaVersion"`
	MediaType     oci.MediaType    `json:"mediaType"`
	ArtifactType  string           `json:"artifactType"`
	Config        wireDescriptor   `json:"config"`
	Layers        []wireDescriptor `json:"layers"`
}

type wireDescriptor struct {
	MediaType oci.MediaType `json:"mediaType"`
	Digest    oci.Digest    `json:"digest"`
	Size      int64         `json:"size"`
}

func (m *Manifest) snapshot() []oci.Descriptor {
	layers := slices.Concat([]oci.Descriptor{m.Packages, m.Kinds}, m.Shards)
	if m.Text != nil {
		layers = append(layers, *m.Text)
	}
	return layers
}

// Layers returns the descriptors of all layers in their order.
func (m *Manifest) Layers() []oci.Descriptor { return slices.Concat(m.snapshot(), m.Journal) }

// base returns the digest that identifies the snapshot: of a line "mediaType digest" for each of its layers.
func (m *Manifest) base() oci.Digest {
	var b strings.Builder
	for _, d := range m.snapshot() {
		fmt.Fprintf(&b, "%s %s\n", d.MediaType, d.Digest)
	}
	return oci.DigestOf([]byte(b.String()))
}

// encode sets Raw and Digest.
func (m *Manifest) encode() {
	w := wireManifest{
		SchemaVersion: 2, MediaType: oci.MediaTypeOCIManifest, ArtifactType: ArtifactType, Config: wire(m.Config),
	}
	for _, d := range m.Layers() {
		w.Layers = append(w.Layers, wire(d))
	}
	m.Raw = encodeJSON(w)
	m.Digest = oci.DigestOf(m.Raw)
}

func wire(d oci.Descriptor) wireDescriptor { return wireDescriptor{d.MediaType, d.Digest, d.Size} }

// ParseManifest parses the manifest of an index. It fails with ErrNotAnIndex for a manifest of other content, and with
// ErrInvalidIndex for layers that do not follow the format.
func ParseManifest(raw []byte) (Manifest, error) {
	doc, err := oci.ParseDocument(raw, oci.MediaTypeOCIManifest, oci.Limits{Manifest: maxManifest})
	if err != nil {
		return Manifest{}, err
	}
	if doc.ArtifactType != ArtifactType || doc.Config == nil {
		return Manifest{}, ErrNotAnIndex.New(nil, "the artifact has the type %.100q, not %s", doc.ArtifactType, ArtifactType)
	}
	m := Manifest{Config: *doc.Config, Raw: raw, Digest: oci.DigestOf(raw)}
	if len(doc.Layers) > maxLayers {
		return Manifest{},
			ErrInvalidIndex.New(nil, "the index has %d layers, at most %d are allowed", len(doc.Layers), maxLayers)
	}
	for _, d := range append([]oci.Descriptor{m.Config}, doc.Layers...) {
		if d.Size > maxLayerSize || d.Size < 0 {
			return Manifest{},
				ErrInvalidIndex.New(nil, "layer %s has %d bytes, at most %d are allowed", d.Digest.Short(), d.Size, maxLayerSize)
		}
	}
	return m, m.readLayers(doc.Layers)
}

// readLayers assigns the layers, which must have the order of the format.
func (m *Manifest) readLayers(layers []oci.Descriptor) error {
	rest := layers
	next := func(t oci.MediaType) *oci.Descriptor {
		if len(rest) == 0 || rest[0].MediaType != t {
			return nil
		}
		d := &rest[0]
		rest = rest[1:]
		return d
	}
	packages, kinds := next(MediaTypePackages), next(MediaTypeKinds)
	if packages == nil || kinds == nil || m.Config.MediaType != MediaTypeConfig {
		return ErrInvalidIndex.New(
			nil, "the index does not begin with its configuration and the layers of packages and kinds",
		)
	}
	m.Packages, m.Kinds = *packages, *kinds
	for d := next(MediaTypeHistory); d != nil; d = next(MediaTypeHistory) {
		m.Shards = append(m.Shards, *d)
	}
	m.Text = next(MediaTypeText)
	for d := next(MediaTypeJournal); d != nil; d = next(MediaTypeJournal) {
		m.Journal = append(m.Journal, *d)
	}
	switch {
	case len(rest) > 0:
		return ErrInvalidIndex.New(nil, "the index has an unexpected layer of type %.100q", string(rest[0].MediaType))
	case !isShardCount(len(m.Shards)):
		return ErrInvalidIndex.New(
			nil, "the index has %d history layers, which is not a power of two up to %d", len(m.Shards), maxShards,
		)
	}
	return nil
}

func isShardCount(n int) bool { return n > 0 && n <= maxShards && n&(n-1) == 0 }
