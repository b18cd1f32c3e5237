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

// formerVariable names the certificate of a client for providers of Crossplane 1. Versions of core up to 2.0 at least
// set it for every Provider, and the manager only keeps it.
var formerVariable = corev1.EnvVar{Name: "ESS_TLS_CERTS_DIR", Value: "$(TLS_CLIENT_CERTS_DIR)"}

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
	if slices.Contains(from.Env, formerVariable) && !slices.Contains(to.Env, formerVariable) {
		to.Env = append(to.Env, formerVariable)
	}
	if _, known := live.Spec.Template.Annotations[manifests.CertificatesAnnotation]; !known {
		delete(same.Template.Annotations, manifests.CertificatesAnnotation)
	}
	reorder(&same.Template, &live.Spec.Template)
	if !equality.Semantic.DeepDerivative(same.Template, live.Spec.Template) {
		return false
	}
	*spec = *same
	return true
}

// reorder puts the variables, ports and mounts of the runtime, and the volumes, into the order that they have in live:
// another package manager lists them in another order, and a Deployment replaces its pods when the order changes.
func reorder(template, live *corev1.PodTemplateSpec) {
	c, other := runtimeContainer(template), runtimeContainer(live)
	c.Env = inOrderOf(other.Env, c.Env, func(e corev1.EnvVar) string { return e.Name })
	c.Ports = inOrderOf(other.Ports, c.Ports, func(p corev1.ContainerPort) string { return p.Name })
	c.VolumeMounts = inOrderOf(
		other.VolumeMounts, c.VolumeMounts, func(m corev1.VolumeMount) string { return m.MountPath },
	)
	template.Spec.Volumes = inOrderOf(
		live.Spec.Volumes, template.Spec.Volumes, func(v corev1.Volume) string { return v.Name },
	)
}

// inOrderOf returns elements in the order of other elements with the same keys. Elements with other keys, or several
// with one key, stay as they are.
func inOrderOf[T any](order, elements []T, key func(T) string) []T {
	known := map[string]T{}
	for _, e := range elements {
		known[key(e)] = e
	}
	var out []T
	for _, e := range order {
		element, ok := known[key(e)]
		if !ok {
			return elements
		}
		out = append(out, element)
	}
	if len(known) != len(elements) || len(out) != len(elements) {
		return elements
	}
	return out
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
