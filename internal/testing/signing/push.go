package signing

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/oci"
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
	a := artifact{}
	config, layer := a.add(mediaTypeEmpty, []byte("{}"), nil), a.add(MediaTypeBundle, bundle, nil)
	// The size of the subject is not known here, and no reader needs it.
	a.finish(t, oci.Document{
		ArtifactType: MediaTypeBundle, Config: &config, Layers: []oci.Descriptor{layer},
		Subject: &oci.Descriptor{MediaType: oci.MediaTypeOCIManifest, Digest: ref.Digest, Size: 1},
	})
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
	a := artifact{}
	layer := a.add(kind, content, annotations)
	config := a.add("application/vnd.oci.image.config.v1+json", []byte(
		`{"architecture":"","os":"","rootfs":{"type":"layers","diff_ids":["`+layer.Digest.String()+`"]},"config":{}}`,
	), nil)
	a.finish(t, oci.Document{Config: &config, Layers: []oci.Descriptor{layer}})
	_, err := client.Push(t.Context(), ref.WithDigest(oci.Digest{}).WithTag(oci.ArtifactTag(ref.Digest, suffix)), a)
	check(t, err)
}

// artifact is an artifact in memory. The root has the empty name.
type artifact map[string][]byte

func (a artifact) add(t oci.MediaType, content []byte, annotations map[string]string) oci.Descriptor {
	d := oci.Descriptor{
		MediaType: t, Digest: oci.DigestOf(content), Size: int64(len(content)), Annotations: maps.Clone(annotations),
	}
	a[d.Digest.String()] = content
	return d
}

func (a artifact) finish(t testing.TB, doc oci.Document) {
	t.Helper()
	doc.SchemaVersion, doc.MediaType = 2, oci.MediaTypeOCIManifest
	raw, err := json.Marshal(doc)
	check(t, err)
	a[""] = raw
	a.add(doc.MediaType, raw, nil)
}

// Root implements [oci.Artifact].
func (a artifact) Root() oci.Descriptor {
	return oci.Descriptor{MediaType: oci.MediaTypeOCIManifest, Digest: oci.DigestOf(a[""]), Size: int64(len(a[""]))}
}

// Open implements [oci.Artifact].
func (a artifact) Open(_ context.Context, d oci.Descriptor) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(a[d.Digest.String()])), nil
}
