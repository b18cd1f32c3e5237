package deployment

import (
	"cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// nextMetadata returns the metadata to write, or nil if the object matches. Intact
// reports that the content is unchanged since the last write.
func nextMetadata(
	live, want metav1.ObjectMeta, owners []metav1.OwnerReference, sum string, now record, intact bool,
) *metav1.ObjectMeta {
	if live.UID != "" && intact && live.Annotations[plan.ContentDigestAnnotation] == sum &&
		manifests.EqualOwners(live.OwnerReferences, owners) && containsAll(live.Labels, want.Labels) &&
		containsAll(live.Annotations, want.Annotations) {
		return nil
	}
	m := metadata(live, want, owners, sum, now)
	return &m
}

// nextDeployment returns the Deployment of this revision to write, or nil if it matches.
// Known is the generation of the last write, or zero.
func nextDeployment(live, want *appsv1.Deployment, a account, known int64) (*appsv1.Deployment, error) {
	spec := want.Spec.DeepCopy()
	keepRestart(&live.Spec.Template, &spec.Template)
	renewed := a.renewPods(live, &spec.Template)
	sum, err := digest(want.ObjectMeta, nil, want.Spec)
	if err != nil {
		return nil, err
	}
	adopted := keepAdopted(live, spec, sum)
	intact := !renewed && (live.Generation == known || equality.Semantic.DeepDerivative(*spec, live.Spec))
	now := recordOf(want.ObjectMeta, nil)
	now.Account = cmp.Or(a.uid(), lastRecord(live.ObjectMeta).Account)
	m := nextMetadata(live.ObjectMeta, want.ObjectMeta, want.OwnerReferences, sum, now, intact)
	if m == nil {
		return nil, nil
	}
	if delete(m.Annotations, adoptedAnnotation); adopted {
		m.Annotations[adoptedAnnotation] = sum
	}
	return &appsv1.Deployment{TypeMeta: want.TypeMeta, ObjectMeta: *m, Spec: *spec}, nil
}

// restarted is the annotation with which `kubectl rollout restart` rolls out new pods.
const restarted = "kubectl.kubernetes.io/restartedAt"

// keepRestart keeps the annotation of a restart that a user requested. Removing it would
// restart the pods again.
func keepRestart(live, want *corev1.PodTemplateSpec) {
	at, ok := live.Annotations[restarted]
	if _, ours := want.Annotations[restarted]; !ok || ours {
		return
	}
	if want.Annotations == nil {
		want.Annotations = map[string]string{}
	}
	want.Annotations[restarted] = at
}

// nextService returns the shared Service to write so that it belongs to this revision.
func nextService(live, want *corev1.Service, owners []metav1.OwnerReference, known int64) (*corev1.Service, error) {
	sum, err := digest(want.ObjectMeta, nil, want.Spec)
	if err != nil {
		return nil, err
	}
	// Not every API server sets the generation of a Service.
	intact := live.Generation != 0 && live.Generation == known || equality.Semantic.DeepDerivative(want.Spec, live.Spec)
	m := nextMetadata(live.ObjectMeta, want.ObjectMeta, owners, sum, recordOf(want.ObjectMeta, nil), intact)
	if m == nil {
		return nil, nil
	}
	return &corev1.Service{TypeMeta: want.TypeMeta, ObjectMeta: *m, Spec: *want.Spec.DeepCopy()}, nil
}

// nextAccount returns the ServiceAccount to write. It preserves additions by others,
// including pull secrets.
func nextAccount(live, want *corev1.ServiceAccount, owners []metav1.OwnerReference) (*corev1.ServiceAccount, error) {
	sum, err := digest(want.ObjectMeta, want.ImagePullSecrets, nil)
	if err != nil {
		return nil, err
	}
	secrets := pullSecrets(live.ImagePullSecrets, lastRecord(live.ObjectMeta).PullSecrets, want.ImagePullSecrets)
	intact := len(secrets) == len(live.ImagePullSecrets)
	m := nextMetadata(
		live.ObjectMeta, want.ObjectMeta, owners, sum, recordOf(want.ObjectMeta, want.ImagePullSecrets), intact,
	)
	if m == nil {
		return nil, nil
	}
	out := live.DeepCopy()
	out.TypeMeta, out.ObjectMeta, out.ImagePullSecrets = want.TypeMeta, *m, secrets
	return out, nil
}

// pullSecrets returns the live pull secrets that other clients added, followed by the wanted ones,
// without duplicates. Ours are the names that the manager wrote last.
func pullSecrets(
	live []corev1.LocalObjectReference, ours []string, want []corev1.LocalObjectReference,
) []corev1.LocalObjectReference {
	drop := map[string]bool{}
	for _, name := range ours {
		drop[name] = true
	}
	for _, s := range want {
		drop[s.Name] = true
	}
	var out []corev1.LocalObjectReference
	for _, s := range live {
		if !drop[s.Name] {
			out = append(out, s)
		}
	}
	return append(out, want...)
}
