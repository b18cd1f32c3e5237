package runtimedefaults

import (
	corev1 "k8s.io/api/core/v1"
)

// Annotation is the annotation of the metadata of a package with the defaults as JSON.
const Annotation = "meta.xpkg.dev/default-runtime"

// LabelPrefix is the prefix of the labels that defaults can set.
const LabelPrefix = "core.crossplane.io/"

// Defaults is the default configuration of a runtime. The zero value configures nothing.
type Defaults struct {
	// None reports that the package has no runtime, and only consists of its objects.
	None bool `json:"none,omitempty"`
	// ImageInPackageRegistry selects the registry of the package, instead of docker.io, for an image in
	// spec.controller.image that names no registry.
	ImageInPackageRegistry bool `json:"imageInPackageRegistry,omitempty"`
	// Labels are labels of the Deployment and its pods, with keys that start with LabelPrefix.
	Labels     map[string]string `json:"labels,omitempty"`
	Replicas   *int32            `json:"replicas,omitempty"`
	Command    []string          `json:"command,omitempty"`
	Args       []string          `json:"args,omitempty"`
	WorkingDir string            `json:"workingDir,omitempty"`
	Env        []Variable        `json:"env,omitempty"`
	Ports      []Port            `json:"ports,omitempty"`
	PullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`
	// Requests and Limits are the resources of the container.
	Requests       corev1.ResourceList `json:"requests,omitempty"`
	Limits         corev1.ResourceList `json:"limits,omitempty"`
	LivenessProbe  *corev1.Probe       `json:"livenessProbe,omitempty"`
	ReadinessProbe *corev1.Probe       `json:"readinessProbe,omitempty"`
	StartupProbe   *corev1.Probe       `json:"startupProbe,omitempty"`
}

// A Variable is an environment variable with a literal value, or with the value of a field of the pod.
type Variable struct {
	Name      string `json:"name"`
	Value     string `json:"value,omitempty"`
	FieldPath string `json:"fieldPath,omitempty"`
}

// A Port is a named port of the container.
type Port struct {
	Name     string          `json:"name,omitempty"`
	Port     int32           `json:"port"`
	Protocol corev1.Protocol `json:"protocol,omitempty"`
}

// Container returns a container with the defaults and the given name. Fields without a default are empty.
func (d *Defaults) Container(name string) corev1.Container {
	c := corev1.Container{
		Name: name, Command: d.Command, Args: d.Args, WorkingDir: d.WorkingDir, ImagePullPolicy: d.PullPolicy,
		Resources:     corev1.ResourceRequirements{Requests: d.Requests, Limits: d.Limits},
		LivenessProbe: d.LivenessProbe, ReadinessProbe: d.ReadinessProbe, StartupProbe: d.StartupProbe,
	}
	for _, v := range d.Env {
		e := corev1.EnvVar{Name: v.Name, Value: v.Value}
		if v.FieldPath != "" {
			e.ValueFrom = &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: v.FieldPath}}
		}
		c.Env = append(c.Env, e)
	}
	for _, p := range d.Ports {
		c.Ports = append(c.Ports, corev1.ContainerPort{Name: p.Name, ContainerPort: p.Port, Protocol: p.Protocol})
	}
	return *c.DeepCopy()
}
