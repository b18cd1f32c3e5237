package bundle

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"path"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Media types of a bundle.
const (
	artifactType                      = "application/vnd.xpkg.bundle.v1"
	mediaTypeContents   oci.MediaType = "application/vnd.xpkg.bundle.contents.v1+json"
	mediaTypeLock       oci.MediaType = "application/vnd.xpkg.lock.v1+yaml"
	mediaTypeConfigs    oci.MediaType = "application/vnd.xpkg.imageconfigs.v1+yaml"
	annotationName                    = "org.opencontainers.image.ref.name"
	layoutFile, layout                = "oci-layout", `{"imageLayoutVersion":"1.0.0"}`
	indexFile                         = "index.json"
	blockSize, trailing               = 512, 1024
	// mostContents bounds index.json, and the config of a bundle, in bytes.
	mostContents = 64 << 20
	mostEntries  = 100_000
)

// limits bounds index.json.
func limits() oci.Limits {
	return oci.Limits{Manifest: mostContents, IndexEntries: mostEntries, Annotations: 2 * mostEntries}.WithDefaults()
}

// contents is the config of the manifest of a bundle.
type contents struct {
	// Platforms are those whose images the bundle contains; empty means all.
	Platforms []string `json:"platforms,omitempty"`
	// Since is the bundle that has what this one omits.
	Since *base `json:"since,omitempty"`
	// Entries is the digest of the entries of index.json, except that of the manifest of the bundle, as JSON.
	Entries oci.Digest `json:"entries"`
	// Blobs are the blobs behind the config, in their order in the file.
	Blobs []blob `json:"blobs"`
	// Omitted are the blobs that the bundle does not contain.
	Omitted []omitted `json:"omitted,omitempty"`
}

// base identifies another bundle.
type base struct {
	Name   string     `json:"name"`
	Digest oci.Digest `json:"digest"`
}

type blob struct {
	Digest oci.Digest `json:"digest"`
	Size   int64      `json:"size"`
}

// omitted is a blob that another bundle contains.
type omitted struct {
	blob
	// Repository is the name of a repository that has the blob once the other bundle is loaded.
	Repository string `json:"repository"`
}

func (b blob) descriptor() oci.Descriptor { return oci.Descriptor{Digest: b.Digest, Size: b.Size} }

func blobOf(d oci.Descriptor) blob { return blob{d.Digest, d.Size} }

// section is a file in a bundle.
type section struct {
	name string
	blob
	// offset is that of the content, behind the header.
	offset int64
	open   func(ctx context.Context) (io.ReadCloser, error)
}

// newSection returns a section with content in memory.
func newSection(name string, data []byte) section {
	d := oci.DescriptorOf("", data)
	if name == "" {
		name = blobName(d.Digest)
	}
	return section{name: name, blob: blobOf(d), open: func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(data)), nil
	}}
}

func blobName(d oci.Digest) string { return path.Join("blobs/sha256", d.Hex()) }

// place sets the offsets of the sections of a file, and returns the offset behind them.
func place(sections []section) int64 {
	from := int64(0)
	for i := range sections {
		sections[i].offset = from + blockSize
		from = sections[i].end()
	}
	return from
}

// end returns the offset of the header of the next section.
func (s section) end() int64 { return s.offset + (s.Size+blockSize-1)/blockSize*blockSize }

// padding returns the zeros behind the content.
func (s section) padding() []byte { return make([]byte, s.end()-s.offset-s.Size) }

// header returns the header of a regular file with mode 0644, owner 0 and the time of the Unix epoch. It is one block:
// sizes from 8 GiB have the form of GNU.
func header(name string, size int64) ([]byte, error) {
	const most = 1 << 33
	h := &tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR,
	}
	if size >= most {
		h.Format = tar.FormatGNU
	}
	var out bytes.Buffer
	err := tar.NewWriter(&out).WriteHeader(h)
	return out.Bytes(), err
}

// head returns the sections before the blobs: the layout, the index with the given entries, the manifest and the
// config. The first blobs are the layers of the manifest.
func head(c contents, layers, entries []oci.Descriptor) ([]section, error) {
	names, err := json.Marshal(entries)
	if err != nil {
		return nil, err
	}
	c.Entries = oci.DigestOf(names)
	config, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	described := oci.DescriptorOf(mediaTypeContents, config)
	manifest, err := json.Marshal(oci.Document{
		SchemaVersion: 2, MediaType: oci.MediaTypeOCIManifest, ArtifactType: artifactType, Config: &described,
		Layers: layers,
	})
	if err != nil {
		return nil, err
	}
	self := oci.DescriptorOf(oci.MediaTypeOCIManifest, manifest)
	self.ArtifactType = artifactType
	index, err := json.Marshal(oci.Document{
		SchemaVersion: 2, MediaType: oci.MediaTypeOCIIndex, Manifests: append([]oci.Descriptor{self}, entries...),
	})
	if err != nil {
		return nil, err
	}
	if len(config) > mostContents || len(index) > mostContents {
		return nil, oci.ErrManifestTooLarge.New(nil, "the bundle has too many artifacts").
			WithDo("Write several bundles with fewer packages.")
	}
	return []section{
		newSection(layoutFile, []byte(layout)), newSection(indexFile, index), newSection("", manifest),
		newSection("", config),
	}, nil
}
