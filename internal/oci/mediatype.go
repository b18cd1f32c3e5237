package oci

import "github.com/google/go-containerregistry/pkg/v1/types"

// MediaType is the media type of a descriptor, manifest or layer.
type MediaType = types.MediaType

// The media types that a package can use (OCI image specification, "OCI Image
// Media Types", and the Docker types of schema 2 that stand for the same).
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

// manifestTypes are the types that a registry may answer with when it is asked
// for a manifest, in the order of preference.
var manifestTypes = []MediaType{
	MediaTypeOCIManifest, MediaTypeDockerManifest, MediaTypeOCIIndex, MediaTypeDockerList,
}

// isSchema1 tells the manifest format of 2015, which carries no digests of its
// layers that could be trusted and no annotations.
func isSchema1(m MediaType) bool {
	return m == types.DockerManifestSchema1 || m == types.DockerManifestSchema1Signed
}

// Compression is how the bytes of a layer are packed.
type Compression string

// The compressions that a layer can have.
const (
	Uncompressed Compression = "uncompressed"
	Gzip         Compression = "gzip"
	Zstd         Compression = "zstd"
)

// layerCompression gives the compression that a layer's media type promises. It
// is false for a media type that is not a layer of a package.
func layerCompression(m MediaType) (Compression, bool) {
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
