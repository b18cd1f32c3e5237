package signing

import (
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

const (
	mediaTypeEmpty    oci.MediaType = "application/vnd.oci.empty.v1+json"
	mediaTypePayload  oci.MediaType = "application/vnd.dev.cosign.simplesigning.v1+json"
	mediaTypeEnvelope oci.MediaType = "application/vnd.dsse.envelope.v1+json"
)

// AttachBundle pushes a bundle as an artifact that refers to the image with the digest of a reference.
func AttachBundle(t testing.TB, client *remote.Client, ref oci.Reference, bundle []byte) oci.Digest {
	t.Helper()
	empty := []byte("{}")
	config := oci.DescriptorOf(mediaTypeEmpty, empty)
	// The size of the subject is not known here, and no reader needs it.
	a, err := image.NewArtifact(oci.Document{
		ArtifactType: MediaTypeBundle, Config: &config, Layers: []oci.Descriptor{oci.DescriptorOf(MediaTypeBundle, bundle)},
		Subject: &oci.Descriptor{MediaType: oci.MediaTypeOCIManifest, Digest: ref.Digest, Size: 1},
	}, empty, bundle)
	check(t, err)
	d, err := client.Attach(t.Context(), ref.WithTag(""), a)
	check(t, err)
	return d
}

// TagPayload pushes a payload with its annotations under the tag of signatures of cosign.
func TagPayload(t testing.TB, client *remote.Client, ref oci.Reference, payload []byte, annotations map[string]string) {
	t.Helper()
	tag(t, client, ref, ".sig", mediaTypePayload, payload, annotations)
}

// TagEnvelope pushes an attestation under the tag of attestations of cosign.
func TagEnvelope(t testing.TB, client *remote.Client, ref oci.Reference, envelope []byte) {
	t.Helper()
	tag(t, client, ref, ".att", mediaTypeEnvelope, envelope, map[string]string{"dev.cosignproject.cosign/signature": ""})
}

func tag(
	t testing.TB, client *remote.Client, ref oci.Reference, suffix string, kind oci.MediaType, content []byte,
	annotations map[string]string,
) {
	t.Helper()
	layer := oci.DescriptorOf(kind, content)
	layer.Annotations = annotations
	configuration := []byte(
		`{"architecture":"","os":"","rootfs":{"type":"layers","diff_ids":["` + layer.Digest.String() + `"]},"config":{}}`,
	)
	config := oci.DescriptorOf("application/vnd.oci.image.config.v1+json", configuration)
	a, err := image.NewArtifact(
		oci.Document{Config: &config, Layers: []oci.Descriptor{layer}}, configuration, content,
	)
	check(t, err)
	_, err = client.Push(t.Context(), ref.WithDigest(oci.Digest{}).WithTag(oci.ArtifactTag(ref.Digest, suffix)), a)
	check(t, err)
}
