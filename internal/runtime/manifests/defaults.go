package manifests

import (
	"cmp"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/pkg/runtimedefaults"
)

// WithDefaults returns a configuration with the defaults of a package for the fields that it does not set. Both can be
// nil. A list of the configuration replaces the default, except that variables and ports are merged by name.
func WithDefaults(
	config *v1beta1.DeploymentRuntimeConfig, d *runtimedefaults.Defaults,
) *v1beta1.DeploymentRuntimeConfig {
	if d == nil {
		return config
	}
	if config = config.DeepCopy(); config == nil {
		config = &v1beta1.DeploymentRuntimeConfig{}
	}
	if config.Spec.DeploymentTemplate == nil {
		config.Spec.DeploymentTemplate = &v1beta1.DeploymentTemplate{}
	}
	t := config.Spec.DeploymentTemplate
	if t.Metadata == nil {
		t.Metadata = &v1beta1.ObjectMeta{}
	}
	if t.Spec == nil {
		t.Spec = &appsv1.DeploymentSpec{}
	}
	t.Metadata.Labels = withLabels(t.Metadata.Labels, d.Labels)
	t.Spec.Template.Labels = withLabels(t.Spec.Template.Labels, d.Labels)
	if t.Spec.Replicas == nil && d.Replicas != nil {
		t.Spec.Replicas = new(*d.Replicas)
	}
	containers := runtimeContainerFirst(t.Spec.Template.Spec.Containers)
	defaultContainer(&containers[0], d.Container(Container))
	t.Spec.Template.Spec.Containers = containers
	return config
}

func withLabels(labels, defaults map[string]string) map[string]string {
	if len(defaults) == 0 {
		return labels
	}
	out := maps.Clone(defaults)
	maps.Copy(out, labels)
	return out
}

// defaultContainer sets the fields of a container that are not set.
func defaultContainer(c *corev1.Container, d corev1.Container) {
	if len(c.Command) == 0 && len(c.Args) == 0 {
		// The default arguments belong to the default command.
		c.Command, c.Args = d.Command, d.Args
	}
	c.WorkingDir = cmp.Or(c.WorkingDir, d.WorkingDir)
	c.ImagePullPolicy = cmp.Or(c.ImagePullPolicy, d.ImagePullPolicy)
	c.Env = append(slices.DeleteFunc(d.Env, func(e corev1.EnvVar) bool {
		return slices.ContainsFunc(c.Env, func(set corev1.EnvVar) bool { return set.Name == e.Name })
	}), c.Env...)
	for _, p := range d.Ports {
		if !slices.ContainsFunc(
			c.Ports, func(set corev1.ContainerPort) bool { return set.Name == p.Name || set.ContainerPort == p.ContainerPort },
		) {
			c.Ports = append(c.Ports, p)
		}
	}
	if c.Resources.Requests == nil && c.Resources.Limits == nil {
		c.Resources.Requests, c.Resources.Limits = d.Resources.Requests, d.Resources.Limits
	}
	c.LivenessProbe = cmp.Or(c.LivenessProbe, d.LivenessProbe)
	c.ReadinessProbe = cmp.Or(c.ReadinessProbe, d.ReadinessProbe)
	c.StartupProbe = cmp.Or(c.StartupProbe, d.StartupProbe)
}
