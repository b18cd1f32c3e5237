package manifests

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// mounted returns a configuration that mounts a volume.
func mounted(v corev1.VolumeSource, m corev1.VolumeMount) *v1beta1.DeploymentRuntimeConfig {
	m.Name = "data"
	return podConfig(corev1.PodSpec{
		Volumes:    []corev1.Volume{{Name: "data", VolumeSource: v}},
		Containers: []corev1.Container{{Name: Container, VolumeMounts: []corev1.VolumeMount{m}}},
	})
}

func variable(from corev1.EnvVarSource) *v1beta1.DeploymentRuntimeConfig {
	return containers(corev1.Container{Name: Container, Env: []corev1.EnvVar{{Name: "SETTING", ValueFrom: &from}}})
}

// A configuration that only a node can carry out is refused, and named.
func TestProcessesHaveNoFeaturesOfNodes(t *testing.T) {
	secret := corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}
	configMap := corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "c"},
	}}
	empty := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	for name, tc := range map[string]struct {
		config *v1beta1.DeploymentRuntimeConfig
		named  string // "" if a process can have it
	}{
		"no configuration": {nil, ""},
		"node selector":    {podConfig(corev1.PodSpec{NodeSelector: map[string]string{"a": "b"}}), ""},
		"init container": {
			podConfig(corev1.PodSpec{InitContainers: []corev1.Container{{Name: "setup"}}}), "the init container setup",
		},
		"second container": {containers(corev1.Container{Name: "sidecar"}), "the second container sidecar"},
		"secret":           {mounted(secret, corev1.VolumeMount{MountPath: "/data"}), ""},
		"config map":       {mounted(configMap, corev1.VolumeMount{MountPath: "/data"}), ""},
		"subPathExpr": {
			mounted(secret, corev1.VolumeMount{MountPath: "/data", SubPathExpr: "$(POD)"}),
			"the volume data mounted by subPathExpr",
		},
		"claim": {mounted(
			corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "x"}},
			corev1.VolumeMount{MountPath: "/data"},
		), "the volume data"},
		"host path": {mounted(
			corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}, corev1.VolumeMount{MountPath: "/data"},
		), "the volume data"},
		"empty folder":     {mounted(empty, corev1.VolumeMount{MountPath: "/data"}), "the volume data"},
		"temporary folder": {mounted(empty, corev1.VolumeMount{MountPath: "/tmp"}), ""},
		"shared memory":    {mounted(empty, corev1.VolumeMount{MountPath: "/dev/shm"}), ""},
		"volume without mount": {
			podConfig(corev1.PodSpec{Volumes: []corev1.Volume{{Name: "data", VolumeSource: empty}}}), "",
		},
		"field": {
			variable(corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}), "",
		},
		"secret key":     {variable(corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}), ""},
		"config map key": {variable(corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: "k"}}), ""},
		"resource": {
			variable(corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}),
			"the variable SETTING",
		},
		"variables of nothing": {
			containers(corev1.Container{Name: Container, EnvFrom: []corev1.EnvFromSource{{Prefix: "A_"}}}),
			"variables from a source",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := provider()
			in.Config = tc.config
			err := build(t, in).CheckProcess()
			switch {
			case tc.named == "" && err != nil:
				t.Error(err)
			case tc.named != "" && (!errors.Is(err, ErrNotForProcesses) || !strings.Contains(err.Error(), tc.named) ||
				!strings.Contains(err.Error(), "provider/provider-aws")):
				t.Errorf("got %v, want one that names %q", err, tc.named)
			}
		})
	}
}

// The pod of a Package comes from its package, so its users cannot change it.
func TestPackageForNodesNamesTheRemedy(t *testing.T) {
	in := provider()
	in.Owner.Package.Namespace = "team"
	in.Config = podConfig(corev1.PodSpec{InitContainers: []corev1.Container{{Name: "setup"}}})
	err := build(t, in).CheckProcess()
	if e := errcode.From(err); !errors.Is(err, ErrNotForProcesses) ||
		!strings.Contains(e.Do, "xpkg bootstrap --first-generation") {
		t.Errorf("error %v with the remedy %q", err, e.Do)
	}
}
