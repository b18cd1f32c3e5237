package publish

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"testing"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// Index returns an image index that lists artifacts, which can be indexes, too.
func Index(t testing.TB, parts ...oci.Artifact) oci.Artifact {
	t.Helper()
	doc := oci.Document{SchemaVersion: 2, MediaType: oci.MediaTypeOCIIndex}
	for _, part := range parts {
		doc.Manifests = append(doc.Manifests, part.Root())
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return index{
		oci.Descriptor{MediaType: oci.MediaTypeOCIIndex, Digest: oci.DigestOf(raw), Size: int64(len(raw))}, raw, parts,
	}
}

type index struct {
	root  oci.Descriptor
	raw   []byte
	parts []oci.Artifact
}

// Root implements [oci.Artifact].
func (x index) Root() oci.Descriptor { return x.root }

// Open implements [oci.Artifact].
func (x index) Open(ctx context.Context, d oci.Descriptor) (io.ReadCloser, error) {
	if d.Digest == x.root.Digest {
		return io.NopCloser(bytes.NewReader(x.raw)), nil
	}
	for _, part := range x.parts {
		if r, err := part.Open(ctx, d); err == nil {
			return r, nil
		}
	}
	return nil, oci.ErrBlobNotFound.New(nil, "no part of the index has %s", d.Digest)
}
