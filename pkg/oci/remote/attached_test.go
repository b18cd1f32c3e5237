package remote_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/testing/port"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// signatures returns an artifact as cosign 2 writes it, with a layer for each text.
func signatures(t *testing.T, texts ...string) oci.Artifact {
	t.Helper()
	config := []byte("{}")
	described := oci.DescriptorOf("application/vnd.oci.image.config.v1+json", config)
	content, layers := [][]byte{config}, []oci.Descriptor(nil)
	for _, text := range texts {
		// Signatures of one payload differ in their annotations alone.
		payload := []byte(strings.SplitN(text, "/", 2)[0])
		layer := oci.DescriptorOf("application/vnd.dev.cosign.simplesigning.v1+json", payload)
		layer.Annotations = map[string]string{"dev.cosignproject.cosign/signature": text}
		content, layers = append(content, payload), append(layers, layer)
	}
	a, err := image.NewArtifact(oci.Document{Config: &described, Layers: layers}, content...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Signatures and attestations under a tag are joined with those that are there, and none is lost or doubled. Other
// artifacts replace each other.
func TestSignaturesUnderATagAreJoined(t *testing.T) {
	for name, handler := range registries(t) {
		t.Run(name, func(t *testing.T) {
			repository := strings.TrimPrefix(port.Serve(t, handler).URL, "http://") + "/acme/boats"
			client := remote.New(remote.Options{})
			t.Cleanup(client.Close)
			subject := oci.DigestOf([]byte(name))
			for suffix, want := range map[string]string{
				".sig": "a/1 a/2 b/1 c/1", ".att": "a/1 a/2 b/1 c/1", ".status": "a/1 c/1",
			} {
				to := oci.MustParseReference(repository + ":" + oci.ArtifactTag(subject, suffix))
				for _, texts := range [][]string{{"a/1", "a/2"}, {"a/1", "a/2"}, {"a/2", "b/1"}, {"a/1"}, {"a/1", "c/1"}} {
					if err := client.PushAttached(t.Context(), to, signatures(t, texts...)); err != nil {
						t.Fatal(err)
					}
				}
				a, err := client.Artifact(t.Context(), to)
				if err != nil {
					t.Fatal(err)
				}
				_, doc, err := oci.ReadDocument(t.Context(), a, a.Root(), oci.Limits{})
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, l := range doc.Layers {
					got = append(got, l.Annotations["dev.cosignproject.cosign/signature"])
					if _, err := oci.ReadSmall(t.Context(), a, l, oci.Limits{}); err != nil {
						t.Errorf("%s: %v", suffix, err)
					}
				}
				if fmt.Sprint(got) != "["+want+"]" {
					t.Errorf("%s: got %v, want %s", suffix, got, want)
				}
			}
		})
	}
}
