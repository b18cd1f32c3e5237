package manifests

import (
	"maps"
	"math"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
)

// deployment returns the Deployment. It starts from the template of the configuration,
// sets defaults for empty fields, and overwrites the fields that cannot be configured.
func (in Input) deployment(account string) *appsv1.Deployment {
	var template v1beta1.DeploymentTemplate
	if in.Config != nil && in.Config.Spec.DeploymentTemplate != nil {
		template = *in.Config.Spec.DeploymentTemplate
	}
	d := &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
		ObjectMeta: in.metadata(template.Metadata, in.Owner.Revision.Name, false),
	}
	if template.Spec != nil {
		template.Spec.DeepCopyInto(&d.Spec)
	}
	in.replicas(&d.Spec)
	in.settle(&d.Spec)
	in.setSelector(&d.Spec)
	in.pod(&d.Spec.Template.Spec, account)
	if in.kind() == v1.ProviderKind {
		annotateScrape(&d.Spec.Template)
	} else {
		in.annotateCertificates(&d.Spec.Template)
	}
	if in.Restart != "" {
		metav1.SetMetaDataAnnotation(&d.Spec.Template.ObjectMeta, RestartAnnotation, in.Restart)
	}
	return d
}

func (in Input) replicas(spec *appsv1.DeploymentSpec) {
	switch {
	case in.AwaitingActivation:
		spec.Replicas = new(int32(0))
	case spec.Replicas == nil:
		spec.Replicas = new(int32(1))
	}
}

// settle sets minReadySeconds if the configuration does not. The API server requires it to be less
// than progressDeadlineSeconds.
func (in Input) settle(spec *appsv1.DeploymentSpec) {
	if spec.MinReadySeconds != 0 {
		return
	}
	spec.MinReadySeconds = int32(math.Ceil(in.Settle.Seconds()))
	if limit := spec.ProgressDeadlineSeconds; limit != nil {
		spec.MinReadySeconds = max(0, min(spec.MinReadySeconds, *limit-1))
	}
}

// setSelector sets the selector of the revision and the matching pod labels. It ignores the
// selector of the configuration, because selectors are immutable.
func (in Input) setSelector(spec *appsv1.DeploymentSpec) {
	spec.Selector = &metav1.LabelSelector{MatchLabels: in.selector()}
	if spec.Template.Labels == nil {
		spec.Template.Labels = map[string]string{}
	}
	maps.Copy(spec.Template.Labels, in.selector())
}

func (in Input) pod(pod *corev1.PodSpec, account string) {
	if pod.ServiceAccountName == "" {
		pod.ServiceAccountName = account
	}
	if pod.SecurityContext == nil {
		pod.SecurityContext = &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), RunAsUser: new(int64(user)), RunAsGroup: new(int64(user)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		}
	}
	pod.ImagePullSecrets = in.pullSecrets(pod.ImagePullSecrets)
	pod.Containers = runtimeContainerFirst(pod.Containers)
	in.container(&pod.Containers[0])
	in.certificates(pod)
}

// runtimeContainerFirst returns the containers with the runtime container first. It adds the
// container if it is missing.
func runtimeContainerFirst(containers []corev1.Container) []corev1.Container {
	program := corev1.Container{Name: Container}
	out := []corev1.Container{program}
	for _, c := range containers {
		if c.Name == Container {
			out[0] = c
			continue
		}
		out = append(out, c)
	}
	return out
}

// annotateScrape adds the annotations for Prometheus scraping, unless the configuration
// already sets them.
func annotateScrape(template *corev1.PodTemplateSpec) {
	if _, set := template.Annotations[scrape]; set {
		return
	}
	if template.Annotations == nil {
		template.Annotations = map[string]string{}
	}
	template.Annotations[scrape] = "true"
	template.Annotations[scrapePort] = strconv.Itoa(int(portOf(&template.Spec.Containers[0], metricsPort)))
	template.Annotations[scrapePath] = "/metrics"
}
