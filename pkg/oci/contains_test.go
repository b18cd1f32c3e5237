package oci_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// documents are the documents of an artifact.
type documents struct {
	root oci.Descriptor
	raw  map[oci.Digest][]byte
}

func (a documents) Root() oci.Descriptor { return a.root }

func (a documents) Open(_ context.Context, d oci.Descriptor) (io.ReadCloser, error) {
	raw, ok := a.raw[d.Digest]
	if !ok {
		return nil, oci.ErrManifestNotFound.New(nil, "no %s", d.Digest)
	}
	return io.NopCloser(bytes.NewReader(raw)), nil
}

// wrap returns an artifact with an index above the root, and with another entry.
func (a documents) wrap(t *testing.T, also ...oci.Descriptor) documents {
	t.Helper()
	raw, err := json.Marshal(oci.Document{
		SchemaVersion: 2, MediaType: oci.MediaTypeOCIIndex, Manifests: append(also, a.root),
	})
	if err != nil {
		t.Fatal(err)
	}
	a.root = oci.Descriptor{MediaType: oci.MediaTypeOCIIndex, Digest: oci.DigestOf(raw), Size: int64(len(raw))}
	a.raw[a.root.Digest] = raw
	return a
}

func TestContainsReadsNestedIndexes(t *testing.T) {
	absent := oci.Descriptor{MediaType: oci.MediaTypeOCIIndex, Digest: oci.DigestOf([]byte("absent")), Size: 6}
	image := oci.Descriptor{MediaType: oci.MediaTypeOCIManifest, Digest: oci.DigestOf([]byte("image")), Size: 5}
	a := documents{image, map[oci.Digest][]byte{}}
	for depth := range 100 {
		found, err := oci.Contains(t.Context(), a, image.Digest, oci.Limits{})
		if err != nil || !found {
			t.Fatalf("under %d indexes: %v, %v", depth, found, err)
		}
		if depth > 0 {
			if found, err := oci.Contains(t.Context(), a, oci.DigestOf([]byte("other")), oci.Limits{}); err != nil || found {
				t.Fatalf("other content under %d indexes: %v, %v", depth, found, err)
			}
		}
		var also []oci.Descriptor
		if depth == 1 {
			also = append(also, absent)
		}
		a = a.wrap(t, also...)
	}
	if _, err := oci.Contains(t.Context(), a.wrap(t), image.Digest, oci.Limits{}); !errors.Is(err, oci.ErrIndexTooDeep) {
		t.Errorf("under 101 indexes: %v", err)
	}
}
