package revision

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// AnnotationHealthy on an inactive revision is "false" if the revision did not become healthy when it was active, or
// was rolled back, and "true" if it was healthy. The conditions of an inactive revision describe the release of its
// objects.
const AnnotationHealthy = "xpkg.dev/was-healthy"

// recordHealth records the health of an active revision of a package that is about to become inactive. A revision that
// was healthy before, and becomes inactive too early to be healthy again, stays healthy.
func recordHealth(p v1.Package, rev v1.PackageRevision) {
	set := func(health string) {
		annotations := metav1.ObjectMeta{Annotations: rev.GetAnnotations()}
		metav1.SetMetaDataAnnotation(&annotations, AnnotationHealthy, health)
		rev.SetAnnotations(annotations.Annotations)
	}
	status, name := p.PackageStatus(), rev.GetName()
	isActivated := status.Activation != nil && status.Activation.Revision == name
	switch {
	case PolicyOf(p).Refused == name:
		set("false")
	case status.LastHealthyRevision == name, isActivated && status.Activation.Healthy,
		HealthOf(rev) == corev1.ConditionTrue:
		set("true")
	case rev.GetAnnotations()[AnnotationHealthy] != "":
	case isActivated, HealthOf(rev) == corev1.ConditionFalse:
		set("false")
	}
}

// HasFailed reports whether an inactive revision did not become healthy when it was active, or was rolled back.
func HasFailed(rev v1.PackageRevision) bool {
	return !IsActive(rev) && rev.GetAnnotations()[AnnotationHealthy] == "false"
}
