package manifests

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/xpkg-dev/xpkg/pkg/runtimedefaults"
)

func packageDefaults() *runtimedefaults.Defaults {
	return &runtimedefaults.Defaults{
		Labels: map[string]string{"core.crossplane.io/name": "sample"}, Replicas: new(int32(2)),
		Command: []string{"/manager"}, Args: []string{"--default"}, PullPolicy: corev1.PullAlways,
		Env:   []runtimedefaults.Variable{{Name: "A", Value: "default"}, {Name: "B", Value: "default"}},
		Ports: []runtimedefaults.Port{{Name: "http", Port: 8081}},
	}
}

func TestDefaultsOfAPackageConfigureItsRuntime(t *testing.T) {
	in := provider()
	in.Config = WithDefaults(nil, packageDefaults())
	d := build(t, in).Deployment
	c := d.Spec.Template.Spec.Containers[0]
	if *d.Spec.Replicas != 2 || d.Labels["core.crossplane.io/name"] != "sample" ||
		d.Spec.Template.Labels["core.crossplane.io/name"] != "sample" {
		t.Errorf("replicas %d, labels %v and %v", *d.Spec.Replicas, d.Labels, d.Spec.Template.Labels)
	}
	if c.Image != in.Image || c.Command[0] != "/manager" || c.Args[0] != "--default" || c.Env[0].Value != "default" ||
		portOf(&c, "http") != 8081 || c.ImagePullPolicy != corev1.PullAlways {
		t.Errorf("container %+v", c)
	}
	if err := build(t, in).CheckPrivileges(nil); err != nil {
		t.Error(err)
	}
}

func TestConfigurationTakesPrecedenceOverTheDefaultsOfThePackage(t *testing.T) {
	config := templated(appsv1.DeploymentSpec{
		Replicas: new(int32(1)), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: Container, Args: []string{"--admin"}, Env: []corev1.EnvVar{{
				Name: "B", Value: "admin",
			}}, Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 9000}}},
			{Name: "sidecar", Image: "acme/sidecar"},
		}}}})
	before := config.DeepCopy()
	in := provider()
	in.Config = WithDefaults(config, packageDefaults())
	if diff := cmp.Diff(before, config); diff != "" {
		t.Errorf("the configuration was changed: %s", diff)
	}
	d := build(t, in).Deployment
	c := d.Spec.Template.Spec.Containers[0]
	if *d.Spec.Replicas != 1 || len(c.Command) != 0 || c.Args[0] != "--admin" || portOf(&c, "http") != 9000 ||
		len(d.Spec.Template.Spec.Containers) != 2 {
		t.Errorf("%d replicas, container %+v", *d.Spec.Replicas, c)
	}
	values := map[string]string{}
	for _, e := range c.Env {
		values[e.Name] = e.Value
	}
	if values["A"] != "default" || values["B"] != "admin" {
		t.Errorf("variables %v", values)
	}
}

func TestPackageWithoutDefaultsKeepsTheConfiguration(t *testing.T) {
	if WithDefaults(nil, nil) != nil {
		t.Error("a configuration was made from nothing")
	}
}
