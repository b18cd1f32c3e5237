package revision

import (
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// AnnotationSource on a revision is the repository from which its content was first installed. The manager records it
// when the package selects another repository with the same content.
const AnnotationSource = "xpkg.dev/source"

// Source returns the repository for which the approvals of a revision were given: the one from which its content was
// first installed. Otherwise a copy of the content in another repository would inherit them, and pass them on to the
// next version from there.
func Source(rev v1.PackageRevision) string {
	if source := rev.GetAnnotations()[AnnotationSource]; source != "" {
		return source
	}
	return oci.RepositoryName(rev.RevisionSpec().Image)
}

// keepSource records the source of a revision that gets another image.
func keepSource(rev v1.PackageRevision, image string) {
	if source := Source(rev); rev.RevisionSpec().Image != "" && source != oci.RepositoryName(image) {
		rev.SetAnnotations(desired.Overlay(rev.GetAnnotations(), map[string]string{AnnotationSource: source}))
	}
}

// AnnotationImageSource on a Provider is the source of its install object: the registry, with a path, of the images
// that its package of the first generation names without a registry.
const AnnotationImageSource = "xpkg.dev/image-source"
