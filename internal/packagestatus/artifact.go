package packagestatus

import (
	"context"
	"time"

	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/image"
)

const (
	mediaTypeStatus oci.MediaType = "application/vnd.xpkg.status.v1+json"
	// annotationCreated is the time of an artifact (OCI image specification, "Pre-Defined Annotation Keys").
	annotationCreated = "org.opencontainers.image.created"
)

// NewArtifact returns the artifact with the status of a version. Its digest depends only on the parameters.
func NewArtifact(subject oci.Descriptor, s catalog.VersionStatus) (oci.Artifact, error) {
	text, err := catalog.EncodeStatus(s)
	if err != nil {
		return nil, err
	}
	return image.NewReferrer(
		subject, catalog.StatusArtifactType, mediaTypeStatus, text,
		map[string]string{annotationCreated: s.Since.UTC().Format(time.RFC3339)},
	)
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
