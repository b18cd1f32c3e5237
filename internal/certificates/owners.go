package certificates

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// owned reports whether a Secret has all of the owners.
func owned(secret *corev1.Secret, owners []metav1.OwnerReference) bool {
	return slices.EqualFunc(secret.OwnerReferences, withOwners(secret.OwnerReferences, owners), equalOwners)
}

// withOwners adds owners. Owners are compared by group, kind and name, because a Secret from a backup has UIDs of
// another cluster. An object has one controller, so a former controller of the same group loses that role.
func withOwners(have, owners []metav1.OwnerReference) []metav1.OwnerReference {
	out := slices.Clone(have)
	for _, o := range owners {
		if o.Controller != nil && *o.Controller {
			for i := range out {
				if groupOf(out[i]) == groupOf(o) && out[i].Controller != nil && *out[i].Controller && !sameOwner(out[i], o) {
					out[i].Controller = new(bool)
				}
			}
		}
		if i := slices.IndexFunc(out, func(have metav1.OwnerReference) bool { return sameOwner(have, o) }); i >= 0 {
			out[i] = o
			continue
		}
		out = append(out, o)
	}
	return out
}

func sameOwner(a, b metav1.OwnerReference) bool {
	return groupOf(a) == groupOf(b) && a.Kind == b.Kind && a.Name == b.Name
}

func groupOf(o metav1.OwnerReference) string {
	gv, err := schema.ParseGroupVersion(o.APIVersion)
	if err != nil {
		return o.APIVersion
	}
	return gv.Group
}

func equalOwners(a, b metav1.OwnerReference) bool {
	flag := func(b *bool) bool { return b != nil && *b }
	return sameOwner(a, b) && a.APIVersion == b.APIVersion && a.UID == b.UID &&
		flag(a.Controller) == flag(b.Controller) && flag(a.BlockOwnerDeletion) == flag(b.BlockOwnerDeletion)
}
