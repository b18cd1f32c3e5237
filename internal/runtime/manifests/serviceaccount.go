package manifests

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
)

// serviceAccount returns the ServiceAccount of the revision, or the one named by the
// configuration, which revisions share.
func (in Input) serviceAccount() *corev1.ServiceAccount {
	var template *v1beta1.ObjectMeta
	if in.Config != nil && in.Config.Spec.ServiceAccountTemplate != nil {
		template = in.Config.Spec.ServiceAccountTemplate.Metadata
	}
	named := template != nil && template.Name != nil && *template.Name != ""
	a := &corev1.ServiceAccount{
		TypeMeta:   metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "ServiceAccount"},
		ObjectMeta: in.metadata(template, in.Owner.Revision.Name, named),
	}
	a.ImagePullSecrets = in.pullSecrets(nil)
	return a
}

// pullSecrets returns others with the pull secrets of the package added, without
// duplicates.
func (in Input) pullSecrets(others []corev1.LocalObjectReference) []corev1.LocalObjectReference {
	for _, name := range in.PullSecrets {
		if ref := (corev1.LocalObjectReference{Name: name}); !slices.Contains(others, ref) {
			others = append(others, ref)
		}
	}
	return others
}

// clone returns a copy of a map, and nil for an empty map.
func clone(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	return maps.Clone(m)
}
