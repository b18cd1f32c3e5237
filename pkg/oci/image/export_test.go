package image

import "github.com/xpkg-dev/xpkg/pkg/oci"

// BuildLayer is buildLayer for the tests of this package.
func BuildLayer(files []File, mediaType oci.MediaType, annotation string) ([]byte, error) {
	layer, err := buildLayer(files, mediaType, annotation)
	return layer.data, err
}
