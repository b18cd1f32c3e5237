package deployment

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/internal/plan"
	"github.com/xpkg-dev/xpkg/internal/runtime/shape"
)

// next tells what an object has to be made: nil says that it is right as it is.
// Intact says of its content that nobody else has touched it since it was written.
func nextMetadata(live, want metav1.ObjectMeta, owners []metav1.OwnerReference, sum string, now record, intact bool) *metav1.ObjectMeta {
	if live.UID != "" && intact && live.Annotations[plan.ContentAnnotation] == sum &&
		shape.EqualOwners(live.OwnerReferences, owners) && holds(live.Labels, want.Labels) && holds(live.Annotations, want.Annotations) {
		return nil
	}
	m := metadata(live, want, owners, sum, now)
	return &m
}

// nextDeployment brings a Deployment of this revision to what it should be. Known is
// the generation that was written last, or zero.
func nextDeployment(live, want *appsv1.Deployment, known int64) (*appsv1.Deployment, error) {
	spec := want.Spec.DeepCopy()
	keepRestart(&live.Spec.Template, &spec.Template)
	sum, err := digest(want.ObjectMeta, nil, want.Spec)
	if err != nil {
		return nil, err
	}
	intact := live.Generation == known || equality.Semantic.DeepDerivative(want.Spec, live.Spec)
	m := nextMetadata(live.ObjectMeta, want.ObjectMeta, want.OwnerReferences, sum, recordOf(want.ObjectMeta, nil), intact)
	if m == nil {
		return nil, nil
	}
	return &appsv1.Deployment{TypeMeta: want.TypeMeta, ObjectMeta: *m, Spec: *spec}, nil
}

// restarted is how `kubectl rollout restart` makes pods new.
const restarted = "kubectl.kubernetes.io/restartedAt"

// keepRestart lets a restart that a person asked for stand: taking it back would
// restart the pods once more.
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

// nextService brings a Service that the revisions of a package share to this one.
func nextService(live, want *corev1.Service, owners []metav1.OwnerReference, known int64) (*corev1.Service, error) {
	sum, err := digest(want.ObjectMeta, nil, want.Spec)
	if err != nil {
		return nil, err
	}
	// The API server counts no generations of Services everywhere.
	intact := live.Generation != 0 && live.Generation == known || equality.Semantic.DeepDerivative(want.Spec, live.Spec)
	m := nextMetadata(live.ObjectMeta, want.ObjectMeta, owners, sum, recordOf(want.ObjectMeta, nil), intact)
	if m == nil {
		return nil, nil
	}
	return &corev1.Service{TypeMeta: want.TypeMeta, ObjectMeta: *m, Spec: *want.Spec.DeepCopy()}, nil
}

// nextAccount brings a ServiceAccount to what it should be. What others wrote into
// it stays, pull secrets among it.
func nextAccount(live, want *corev1.ServiceAccount, owners []metav1.OwnerReference) (*corev1.ServiceAccount, error) {
	sum, err := digest(want.ObjectMeta, want.ImagePullSecrets, nil)
	if err != nil {
		return nil, err
	}
	secrets := pullSecrets(live.ImagePullSecrets, written(live.ObjectMeta).PullSecrets, want.ImagePullSecrets)
	intact := len(secrets) == len(live.ImagePullSecrets)
	m := nextMetadata(live.ObjectMeta, want.ObjectMeta, owners, sum, recordOf(want.ObjectMeta, want.ImagePullSecrets), intact)
	if m == nil {
		return nil, nil
	}
	out := live.DeepCopy()
	out.TypeMeta, out.ObjectMeta, out.ImagePullSecrets = want.TypeMeta, *m, secrets
	return out, nil
}

// pullSecrets keeps those of others, and has each once.
func pullSecrets(live []corev1.LocalObjectReference, ours []string, want []corev1.LocalObjectReference) []corev1.LocalObjectReference {
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
