package manifests

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
)

// FromControllerConfig converts a ControllerConfig to a DeploymentRuntimeConfig (packages
// guide, "spec.controllerConfigRef"), which keeps its kind and its name.
//
// The labels and annotations of the ControllerConfig become labels and annotations of the
// ServiceAccount, from which a provider receives a cloud role. A ServiceAccount named by the
// ControllerConfig is used unchanged if it exists and has another owner. Otherwise it is
// created.
func FromControllerConfig(c *v1alpha1.ControllerConfig) *v1beta1.DeploymentRuntimeConfig {
	c = c.DeepCopy()
	return &v1beta1.DeploymentRuntimeConfig{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ControllerConfigKind},
		ObjectMeta: metav1.ObjectMeta{Name: c.Name},
		Spec: v1beta1.DeploymentRuntimeConfigSpec{
			DeploymentTemplate: &v1beta1.DeploymentTemplate{Spec: &appsv1.DeploymentSpec{
				Replicas: c.Spec.Replicas,
				Template: corev1.PodTemplateSpec{ObjectMeta: podMetadata(c.Spec.Metadata), Spec: podSpec(c.Spec)},
			}},
			ServiceAccountTemplate: accountTemplate(c),
		},
	}
}

func accountTemplate(c *v1alpha1.ControllerConfig) *v1beta1.ServiceAccountTemplate {
	if len(c.Labels) == 0 && len(c.Annotations) == 0 && c.Spec.ServiceAccountName == nil {
		return nil
	}
	annotations := clone(c.Annotations)
	// The annotation describes the ControllerConfig itself.
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	return &v1beta1.ServiceAccountTemplate{Metadata: &v1beta1.ObjectMeta{
		Name: c.Spec.ServiceAccountName, Labels: clone(c.Labels), Annotations: clone(annotations),
	}}
}

func podMetadata(m *v1alpha1.PodObjectMeta) metav1.ObjectMeta {
	if m == nil {
		return metav1.ObjectMeta{}
	}
	return metav1.ObjectMeta{Labels: m.Labels, Annotations: m.Annotations}
}

func podSpec(s v1alpha1.ControllerConfigSpec) corev1.PodSpec {
	return corev1.PodSpec{
		NodeName: value(s.NodeName), NodeSelector: s.NodeSelector, Affinity: s.Affinity, Tolerations: s.Tolerations,
		PriorityClassName: value(s.PriorityClassName), RuntimeClassName: s.RuntimeClassName,
		SecurityContext: s.PodSecurityContext, ImagePullSecrets: s.ImagePullSecrets, Volumes: s.Volumes,
		Containers: []corev1.Container{{
			Name: Container, Image: value(s.Image), ImagePullPolicy: value(s.ImagePullPolicy), Args: s.Args,
			Env: s.Env, EnvFrom: s.EnvFrom, Ports: s.Ports, VolumeMounts: s.VolumeMounts,
			Resources: value(s.Resources), SecurityContext: s.SecurityContext,
		}},
	}
}

// value returns the value that p points to, or the zero value for nil.
func value[T any](p *T) T {
	if p == nil {
		var none T
		return none
	}
	return *p
}
