package image

import (
	"encoding/json"
	"fmt"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/internal/assembly"
)

// NewArtifact returns the artifact with a manifest, such as a signature, and the content that the manifest names. It
// sets the versions of the manifest. The digest depends only on the manifest.
func NewArtifact(manifest oci.Document, content ...[]byte) (oci.Artifact, error) {
	manifest.SchemaVersion, manifest.MediaType = 2, oci.MediaTypeOCIManifest
	raw, err := json.Marshal(manifest)
	if err != nil {
		return nil, fmt.Errorf("encode a manifest: %w", err)
	}
	a := &assembly.Assembly{Desc: oci.DescriptorOf(manifest.MediaType, raw)}
	for _, c := range append(content, raw) {
		a.Add(oci.DigestOf(c), assembly.BytesSource(c))
	}
	return a, nil
}
