package shape

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
)

// ConfiguredImage is the image that a configuration names for the program, in place of
// that of the package; empty when it names none.
func ConfiguredImage(c *v1beta1.DeploymentRuntimeConfig) string {
	if p := configuredProgram(c); p != nil {
		return p.Image
	}
	return ""
}

// WithoutImage is the configuration without the image that it names, for a program
// whose image was resolved to a digest.
func WithoutImage(c *v1beta1.DeploymentRuntimeConfig) *v1beta1.DeploymentRuntimeConfig {
	if ConfiguredImage(c) == "" {
		return c
	}
	c = c.DeepCopy()
	configuredProgram(c).Image = ""
	return c
}

// configuredProgram is the container of the program in a configuration, or nil.
func configuredProgram(c *v1beta1.DeploymentRuntimeConfig) *corev1.Container {
	if c == nil || c.Spec.DeploymentTemplate == nil || c.Spec.DeploymentTemplate.Spec == nil {
		return nil
	}
	containers := c.Spec.DeploymentTemplate.Spec.Template.Spec.Containers
	for i := range containers {
		if containers[i].Name == Container {
			return &containers[i]
		}
	}
	return nil
}
