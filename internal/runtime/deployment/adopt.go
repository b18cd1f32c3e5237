package deployment

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// adoptedAnnotation on a Deployment that another package manager created is the digest of the
// desired state with which the Deployment was adopted. Its pods run the content of their revision
// already, so they are not restarted only to pin the image to its digest. The next change of the
// desired state pins the image.
const adoptedAnnotation = "xpkg.dev/adopted-state"

// keepAdopted changes spec to the live image of a Deployment that is being adopted, or was adopted
// with the same desired state, if the Deployment runs the same content with the same configuration.
// Sum is the digest of the desired state. It reports whether it changed spec.
func keepAdopted(live *appsv1.Deployment, spec *appsv1.DeploymentSpec, sum string) bool {
	adopts := live.UID != "" && live.Annotations[plan.ContentDigestAnnotation] == ""
	if !adopts && live.Annotations[adoptedAnnotation] != sum {
		return false
	}
	same := spec.DeepCopy()
	to, from := runtimeContainer(&same.Template), runtimeContainer(&live.Spec.Template)
	if to == nil || from == nil || from.Image == to.Image || !sameContent(from.Image, to.Image) {
		return false
	}
	to.Image = from.Image
	if _, known := live.Spec.Template.Annotations[manifests.CertificatesAnnotation]; !known {
		delete(same.Template.Annotations, manifests.CertificatesAnnotation)
	}
	if !equality.Semantic.DeepDerivative(same.Template, live.Spec.Template) {
		return false
	}
	*spec = *same
	return true
}

// runtimeContainer returns the container of the runtime, or nil.
func runtimeContainer(t *corev1.PodTemplateSpec) *corev1.Container {
	i := slices.IndexFunc(t.Spec.Containers, func(c corev1.Container) bool { return c.Name == manifests.Container })
	if i < 0 {
		return nil
	}
	return &t.Spec.Containers[i]
}

// sameContent reports whether an image that another package manager set for a revision has the same
// content as pinned, the image with the digest of the revision: it names the same repository, and
// the same digest or, without a digest, the same tag.
func sameContent(image, pinned string) bool {
	a, errA := oci.ParseReference(image, oci.ParseOptions{})
	b, errB := oci.ParseReference(pinned, oci.ParseOptions{})
	if errA != nil || errB != nil || a.Name() != b.Name() {
		return false
	}
	if a.Digest.IsZero() {
		return a.Tag == b.Tag
	}
	return a.Digest == b.Digest
}
