package manifests

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
)

// ConfiguredImage returns the image that a configuration sets for the runtime in place of
// the package image. It returns an empty string if the configuration sets none.
func ConfiguredImage(c *v1beta1.DeploymentRuntimeConfig) string {
	if p := configuredContainer(c); p != nil {
		return p.Image
	}
	return ""
}

// WithoutImage returns a copy of the configuration without its image, for a runtime whose
// image was resolved to a digest.
func WithoutImage(c *v1beta1.DeploymentRuntimeConfig) *v1beta1.DeploymentRuntimeConfig {
	if ConfiguredImage(c) == "" {
		return c
	}
	c = c.DeepCopy()
	configuredContainer(c).Image = ""
	return c
}

// configuredContainer returns the runtime container in a configuration, or nil.
func configuredContainer(c *v1beta1.DeploymentRuntimeConfig) *corev1.Container {
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
