package oci

import "github.com/google/go-containerregistry/pkg/v1/types"

// MediaType is the media type of a descriptor, manifest or layer.
type MediaType = types.MediaType

// Media types of packages (OCI image specification, "OCI Image Media Types", and the
// equivalent Docker schema 2 types).
const (
	MediaTypeOCIIndex        = types.OCIImageIndex
	MediaTypeOCIManifest     = types.OCIManifestSchema1
	MediaTypeOCIConfig       = types.OCIConfigJSON
	MediaTypeOCILayer        = types.OCIUncompressedLayer
	MediaTypeOCILayerGzip    = types.OCILayer
	MediaTypeOCILayerZstd    = types.OCILayerZStd
	MediaTypeDockerList      = types.DockerManifestList
	MediaTypeDockerManifest  = types.DockerManifestSchema2
	MediaTypeDockerConfig    = types.DockerConfigJSON
	MediaTypeDockerLayer     = types.DockerUncompressedLayer
	MediaTypeDockerLayerGzip = types.DockerLayer
)

// MediaTypeEmpty is the type of an empty JSON object, in place of a configuration or a layer (OCI image specification,
// "Guidance for an Empty Descriptor").
const MediaTypeEmpty MediaType = "application/vnd.oci.empty.v1+json"

// IsDockerSchema1 reports whether m is Docker schema 1, which has neither verifiable
// layer digests nor annotations.
func IsDockerSchema1(m MediaType) bool {
	return m == types.DockerManifestSchema1 || m == types.DockerManifestSchema1Signed
}

// Compression is the compression of a layer.
type Compression string

// Compressions of layers.
const (
	Uncompressed Compression = "uncompressed"
	Gzip         Compression = "gzip"
	Zstd         Compression = "zstd"
)

// LayerCompression returns the compression that a layer's media type declares, and
// false for a media type that is not a layer of an image.
func LayerCompression(m MediaType) (Compression, bool) {
	switch m {
	case MediaTypeOCILayer, MediaTypeDockerLayer:
		return Uncompressed, true
	case MediaTypeOCILayerGzip, MediaTypeDockerLayerGzip:
		return Gzip, true
	case MediaTypeOCILayerZstd:
		return Zstd, true
	}
	return "", false
}
