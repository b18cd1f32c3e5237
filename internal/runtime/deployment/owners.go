package deployment

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/plan"
)

// holderOf is the owner that controls an object, or nil.
func holderOf(o client.Object) *metav1.OwnerReference { return metav1.GetControllerOf(o) }

// isRevision compares an owner by group, kind and name: after a backup was restored
// the UIDs differ.
func isRevision(r metav1.OwnerReference, o plan.Owner) bool {
	return groupOf(r.APIVersion) == groupOf(o.APIVersion) && r.Kind == o.Kind && r.Name == o.Name
}

func isSibling(r metav1.OwnerReference, who plan.Requester) bool {
	return groupOf(r.APIVersion) == groupOf(who.Revision.APIVersion) && r.Kind == who.Revision.Kind && slices.Contains(who.Siblings, r.Name)
}

func groupOf(apiVersion string) string { return schema.FromAPIVersionAndKind(apiVersion, "").Group }

func sameSelector(a, b *appsv1.Deployment) bool {
	return a.Spec.Selector != nil && maps.Equal(a.Spec.Selector.MatchLabels, b.Spec.Selector.MatchLabels) && len(a.Spec.Selector.MatchExpressions) == 0
}

// kindOf is the kind of an object that was written or is to be. Typed clients drop
// it when they read.
func kindOf(o client.Object) string {
	if kind := o.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	if _, ok := o.(*appsv1.Deployment); ok {
		return "Deployment"
	}
	return "object"
}
