package lease

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strconv"

	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// artifactType is the type of the manifest of a record.
const artifactType = "application/vnd.xpkg.lease.v1+json"

// empty is the type of emptyContent (OCI image specification, "Guidance for an Empty Descriptor").
const empty oci.MediaType = "application/vnd.oci.empty.v1+json"

const emptyContent = "{}"

// The annotations of a record.
const holderAnnotation, serialAnnotation = "dev.xpkg.lease.holder", "dev.xpkg.lease.serial"

// record is the content of the manifest of a lease.
type record struct {
	Holder string
	Serial int
	// Free means that no server holds the lease.
	Free bool
}

// artifact is a manifest of annotations.
type artifact struct {
	root oci.Descriptor
	raw  []byte
}

// artifact returns the record as an artifact.
func (r record) artifact() *artifact {
	nothing := oci.Descriptor{MediaType: empty, Digest: oci.DigestOf([]byte(emptyContent)), Size: int64(len(emptyContent))}
	doc := oci.Document{
		SchemaVersion: 2, MediaType: oci.MediaTypeOCIManifest, ArtifactType: artifactType, Config: &nothing, Layers: []oci.Descriptor{nothing},
	}
	if !r.Free {
		doc.Annotations = map[string]string{holderAnnotation: r.Holder, serialAnnotation: strconv.Itoa(r.Serial)}
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		raw = nil // Strings can always be encoded.
	}
	return &artifact{root: oci.Descriptor{MediaType: oci.MediaTypeOCIManifest, Digest: oci.DigestOf(raw), Size: int64(len(raw))}, raw: raw}
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

// readRecord reads a record. Any other manifest counts as the record of an unknown holder.
func readRecord(ctx context.Context, a oci.Artifact) (record, error) {
	_, doc, err := oci.ReadDocument(ctx, a, a.Root(), oci.Limits{})
	if err != nil {
		return record{}, err
	}
	holder := doc.Annotations[holderAnnotation]
	return record{Holder: holder, Free: holder == "" && doc.ArtifactType == artifactType}, nil
}
