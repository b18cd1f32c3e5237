package image

import (
	"encoding/json"
	"fmt"
	"strings"

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

// NewReferrer returns the artifact of a type with one content, which refers to a subject. It has the empty
// configuration (OCI image specification, "Guidance for an Empty Descriptor").
func NewReferrer(
	subject oci.Descriptor, artifactType string, kind oci.MediaType, content []byte, annotations map[string]string,
) (oci.Artifact, error) {
	empty := []byte("{}")
	config := oci.DescriptorOf(oci.MediaTypeEmpty, empty)
	return NewArtifact(oci.Document{
		ArtifactType: artifactType, Config: &config, Layers: []oci.Descriptor{oci.DescriptorOf(kind, content)},
		Subject:     &oci.Descriptor{MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size},
		Annotations: annotations,
	}, empty, content)
}

// NewLayered returns an image with layers and no other configuration, as cosign 2 writes signatures: each layer is one.
func NewLayered(
	layers []oci.Descriptor, annotations map[string]string, content ...[]byte,
) (oci.Artifact, error) {
	var ids []string
	for _, l := range layers {
		ids = append(ids, `"`+l.Digest.String()+`"`)
	}
	config := []byte(
		`{"architecture":"","os":"","rootfs":{"type":"layers","diff_ids":[` + strings.Join(ids, ",") + `]},"config":{}}`,
	)
	described := oci.DescriptorOf(oci.MediaTypeOCIConfig, config)
	return NewArtifact(
		oci.Document{Config: &described, Layers: layers, Annotations: annotations}, append(content, config)...,
	)
}
