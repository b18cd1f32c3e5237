package deployment

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// holderOf returns the owner that controls an object, or nil.
func holderOf(o client.Object) *metav1.OwnerReference { return metav1.GetControllerOf(o) }

func sameSelector(a, b *appsv1.Deployment) bool {
	return a.Spec.Selector != nil && maps.Equal(a.Spec.Selector.MatchLabels, b.Spec.Selector.MatchLabels) &&
		len(a.Spec.Selector.MatchExpressions) == 0
}

// kindOf returns the kind of an object. Typed clients drop it when they read.
func kindOf(o client.Object) string {
	if kind := o.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	switch o.(type) {
	case *appsv1.Deployment:
		return "Deployment"
	case *corev1.ServiceAccount:
		return "ServiceAccount"
	}
	return "object"
}
