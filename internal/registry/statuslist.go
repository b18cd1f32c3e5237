package registry

import (
	"context"
	"reflect"

	"github.com/xpkg-dev/xpkg/internal/packagestatus"
	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

// listsStatuses reports whether a push only adds statuses of a version to the list of its referrers, and the subject
// may set them. Clients keep this list under a tag in a registry without the referrers API.
func (p *push) listsStatuses(ctx context.Context, tags []string, doc *oci.Document) (bool, error) {
	if len(tags) != 1 || !p.policy().May(p.subject, p.api.Repository, access.Yank) {
		return false, nil
	}
	version, isList := remote.ParseFallbackTag(tags[0])
	if !isList {
		return false, nil
	}
	ref, err := p.packages.reference(p.api.Repository)
	if err != nil {
		return false, err
	}
	current := &oci.Document{SchemaVersion: doc.SchemaVersion, MediaType: oci.MediaTypeOCIIndex}
	digest, err := p.images.digest(ctx, p.api.Repository, tags[0])
	if err != nil {
		return false, err
	}
	if !digest.IsZero() {
		if current, err = p.document(ctx, ref.WithDigest(digest)); err != nil {
			return false, err
		}
	}
	known := len(current.Manifests)
	if len(doc.Manifests) < known {
		return false, nil
	}
	added, rest := doc.Manifests[known:], *doc
	if rest.Manifests = doc.Manifests[:known:known]; known == 0 {
		rest.Manifests = current.Manifests
	}
	if !reflect.DeepEqual(rest, *current) {
		return false, nil
	}
	for _, entry := range added {
		a, err := p.packages.client.Artifact(ctx, ref.WithDigest(entry.Digest))
		if err == nil {
			_, err = packagestatus.FromArtifact(ctx, a, version)
		}
		if err != nil && isTemporary(ctx, err) {
			return false, err
		}
		if err != nil || entry.ArtifactType != catalog.StatusArtifactType || entry.MediaType != a.Root().MediaType ||
			entry.Size != a.Root().Size {
			return false, nil //nolint:nilerr // The entry is no status.
		}
	}
	return true, nil
}

// document returns the manifest at a reference.
func (p *push) document(ctx context.Context, ref oci.Reference) (*oci.Document, error) {
	a, err := p.packages.client.Artifact(ctx, ref)
	if err != nil {
		return nil, err
	}
	_, doc, err := oci.ReadDocument(ctx, a, a.Root(), oci.Limits{})
	return doc, err
}
