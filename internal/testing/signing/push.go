package signing

import (
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

const (
	mediaTypePayload  oci.MediaType = "application/vnd.dev.cosign.simplesigning.v1+json"
	mediaTypeEnvelope oci.MediaType = "application/vnd.dsse.envelope.v1+json"
)

// AttachBundle pushes a bundle as an artifact that refers to the image with the digest of a reference.
func AttachBundle(t testing.TB, client *remote.Client, ref oci.Reference, bundle []byte) oci.Digest {
	t.Helper()
	// The size of the subject is not known here, and no reader needs it.
	subject := oci.Descriptor{MediaType: oci.MediaTypeOCIManifest, Digest: ref.Digest, Size: 1}
	a, err := image.NewReferrer(subject, MediaTypeBundle, MediaTypeBundle, bundle, nil)
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
	a, err := image.NewLayered([]oci.Descriptor{layer}, nil, content)
	check(t, err)
	_, err = client.Push(t.Context(), ref.WithDigest(oci.Digest{}).WithTag(oci.ArtifactTag(ref.Digest, suffix)), a)
	check(t, err)
}
