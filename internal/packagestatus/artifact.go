package packagestatus

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

const (
	mediaTypeEmpty  oci.MediaType = "application/vnd.oci.empty.v1+json"
	mediaTypeStatus oci.MediaType = "application/vnd.xpkg.status.v1+json"
	emptyConfig                   = "{}"
	// annotationCreated is the time of an artifact (OCI image specification, "Pre-Defined Annotation Keys").
	annotationCreated = "org.opencontainers.image.created"
)

// artifact is a manifest with a configuration and a layer, in memory.
type artifact struct {
	root  oci.Descriptor
	blobs map[oci.Digest][]byte
}

// Root implements [oci.Artifact].
func (a *artifact) Root() oci.Descriptor { return a.root }

// Open implements [oci.Artifact].
func (a *artifact) Open(_ context.Context, d oci.Descriptor) (io.ReadCloser, error) {
	blob, ok := a.blobs[d.Digest]
	if !ok {
		return nil, oci.ErrBlobNotFound.New(nil, "%s is not part of the status", d.Digest)
	}
	return io.NopCloser(bytes.NewReader(blob)), nil
}

func (a *artifact) add(t oci.MediaType, content []byte) oci.Descriptor {
	d := oci.Descriptor{MediaType: t, Digest: oci.DigestOf(content), Size: int64(len(content))}
	a.blobs[d.Digest] = content
	return d
}

// NewArtifact returns the artifact with the status of a version. Its digest depends only on the parameters.
func NewArtifact(subject oci.Descriptor, s catalog.VersionStatus) (oci.Artifact, error) {
	text, err := catalog.EncodeStatus(s)
	if err != nil {
		return nil, err
	}
	a := &artifact{blobs: map[oci.Digest][]byte{}}
	config := a.add(mediaTypeEmpty, []byte(emptyConfig))
	raw, err := json.Marshal(oci.Document{
		SchemaVersion: 2, MediaType: oci.MediaTypeOCIManifest, ArtifactType: catalog.StatusArtifactType,
		Config: &config, Layers: []oci.Descriptor{a.add(mediaTypeStatus, text)},
		Subject:     &oci.Descriptor{MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size},
		Annotations: map[string]string{annotationCreated: s.Since.UTC().Format(time.RFC3339)},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot encode the manifest of the status: %w", err)
	}
	a.root = a.add(oci.MediaTypeOCIManifest, raw)
	return a, nil
}

// largestStatus is the maximum size of a status in bytes, as in package catalog.
const largestStatus = 16 << 10

// FromArtifact returns the status in an artifact. It fails with ErrInvalidStatus unless the artifact is a status of the
// version with the digest.
func FromArtifact(ctx context.Context, a oci.Artifact, version oci.Digest) (catalog.VersionStatus, error) {
	_, doc, err := oci.ReadDocument(ctx, a, a.Root(), oci.Limits{})
	if err != nil {
		return catalog.VersionStatus{}, err
	}
	switch {
	case doc.ArtifactType != catalog.StatusArtifactType || len(doc.Layers) != 1:
		return catalog.VersionStatus{},
			catalog.ErrInvalidStatus.New(nil, "%s is not the status of a version", a.Root().Digest.Short())
	case doc.Subject == nil || doc.Subject.Digest != version:
		return catalog.VersionStatus{},
			catalog.ErrInvalidStatus.New(nil, "the status %s is not that of %s", a.Root().Digest.Short(), version.Short())
	case doc.Layers[0].Size > largestStatus:
		return catalog.VersionStatus{},
			catalog.ErrInvalidStatus.New(nil, "the status %s has more than %d bytes", a.Root().Digest.Short(), largestStatus)
	}
	text, err := oci.ReadSmall(ctx, a, doc.Layers[0], oci.Limits{})
	if err != nil {
		return catalog.VersionStatus{}, err
	}
	s, err := catalog.ParseStatus(text)
	if err == nil && s.Digest != version {
		err = catalog.ErrInvalidStatus.New(
			nil, "the status %s names the version %s instead of %s", a.Root().Digest.Short(), s.Digest.Short(), version.Short(),
		)
	}
	return s, err
}
