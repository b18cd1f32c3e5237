// Package annotated provides artifacts that consist of annotations, with which the servers in front of a registry
// coordinate.
package annotated

import (
	"bytes"
	"context"
	"encoding/json"
	"io"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// emptyContent is the content of oci.MediaTypeEmpty.
const emptyContent = "{}"

// artifact is a manifest of annotations.
type artifact struct {
	root oci.Descriptor
	raw  []byte
}

// New returns an artifact of a type with annotations. Its digest depends only on the parameters.
func New(artifactType string, annotations map[string]string) oci.Artifact {
	nothing := oci.DescriptorOf(oci.MediaTypeEmpty, []byte(emptyContent))
	raw, err := json.Marshal(oci.Document{
		SchemaVersion: 2, MediaType: oci.MediaTypeOCIManifest, ArtifactType: artifactType, Config: &nothing,
		Layers:      []oci.Descriptor{nothing},
		Annotations: annotations,
	})
	if err != nil {
		raw = nil // Strings can always be encoded.
	}
	return &artifact{root: oci.DescriptorOf(oci.MediaTypeOCIManifest, raw), raw: raw}
}

// Root implements [oci.Artifact].
func (a *artifact) Root() oci.Descriptor { return a.root }

// Open implements [oci.Artifact].
func (a *artifact) Open(_ context.Context, d oci.Descriptor) (io.ReadCloser, error) {
	content := []byte(emptyContent)
	if d.Digest == a.root.Digest {
		content = a.raw
	}
	return io.NopCloser(bytes.NewReader(content)), nil
}

// Read returns the type and the annotations of an artifact.
func Read(ctx context.Context, a oci.Artifact) (artifactType string, annotations map[string]string, err error) {
	_, doc, err := oci.ReadDocument(ctx, a, a.Root(), oci.Limits{})
	if err != nil {
		return "", nil, err
	}
	return doc.ArtifactType, doc.Annotations, nil
}
