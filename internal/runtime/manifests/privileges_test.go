package manifests

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
)

func podConfig(pod corev1.PodSpec) *v1beta1.DeploymentRuntimeConfig {
	return templated(appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: pod}})
}

func securityConfig(s corev1.SecurityContext) *v1beta1.DeploymentRuntimeConfig {
	return containers(corev1.Container{Name: Container, SecurityContext: &s})
}

// A runtime configuration uses no privilege that the manager does not allow, wherever the
// configuration has it.
//
// hardening: H5
func TestPrivilegesNeedPermissionOfTheManager(t *testing.T) {
	hostPath := corev1.Volume{Name: "node", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{
		Path: "/",
	}}}
	unconfined := &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}
	metadataRequest := &corev1.HTTPGetAction{Host: "169.254.169.254"}
	added := &corev1.Capabilities{Add: []corev1.Capability{"SYS_ADMIN"}}
	for name, tc := range map[string]struct {
		config *v1beta1.DeploymentRuntimeConfig
		needs  Privilege
		named  string
	}{
		"network of the node": {podConfig(corev1.PodSpec{HostNetwork: true}), HostNetwork, "hostNetwork"},
		"port of the node": {
			containers(corev1.Container{Name: Container, Ports: []corev1.ContainerPort{{ContainerPort: 1, HostPort: 443}}}),
			HostNetwork, "hostPort 443",
		},
		"processes of the node": {podConfig(corev1.PodSpec{HostPID: true}), HostPID, "hostPID"},
		"IPC of the node":       {podConfig(corev1.PodSpec{HostIPC: true}), HostIPC, "hostIPC"},
		"files of the node": {
			podConfig(corev1.PodSpec{Volumes: []corev1.Volume{hostPath}}), HostPath, "volume node",
		},
		"privileged container": {
			securityConfig(corev1.SecurityContext{Privileged: new(true)}), Privileged, "privileged container",
		},
		"unmasked proc": {
			securityConfig(corev1.SecurityContext{ProcMount: new(corev1.UnmaskedProcMount)}), Privileged, "/proc",
		},
		"unconfined container": {
			securityConfig(corev1.SecurityContext{SeccompProfile: unconfined}), Privileged, "unconfined",
		},
		"unconfined pod": {
			podConfig(corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{SeccompProfile: unconfined}}), Privileged,
			"unconfined",
		},
		"sysctls": {podConfig(corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{
			Sysctls: []corev1.Sysctl{{Name: "kernel.msgmax"}},
		}}), Privileged, "sysctls"},
		"driver of the node": {podConfig(corev1.PodSpec{Volumes: []corev1.Volume{{
			Name: "node", VolumeSource: corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{Driver: "x"}},
		}}}), HostPath, "volume node"},
		"SELinux type of a pod": {podConfig(corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{
			SELinuxOptions: &corev1.SELinuxOptions{Type: "spc_t"},
		}}), Privileged, "seLinuxOptions"},
		"SELinux type": {
			securityConfig(corev1.SecurityContext{SELinuxOptions: &corev1.SELinuxOptions{Type: "spc_t"}}), Privileged,
			"seLinuxOptions",
		},
		"SELinux user": {
			securityConfig(corev1.SecurityContext{SELinuxOptions: &corev1.SELinuxOptions{User: "system_u"}}), Privileged,
			"seLinuxOptions",
		},
		"host of a probe": {containers(corev1.Container{Name: Container, LivenessProbe: &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{HTTPGet: metadataRequest},
		}}), HostNetwork, "the host 169.254.169.254"},
		"host of a hook": {containers(corev1.Container{Name: Container, Lifecycle: &corev1.Lifecycle{
			PostStart: &corev1.LifecycleHandler{HTTPGet: metadataRequest},
		}}), HostNetwork, "the host 169.254.169.254"},
		"capability": {
			securityConfig(corev1.SecurityContext{Capabilities: added}), Capabilities, "SYS_ADMIN",
		},
		"capability of a sidecar": {
			containers(corev1.Container{Name: "sidecar", SecurityContext: &corev1.SecurityContext{Capabilities: added}}),
			Capabilities, "SYS_ADMIN",
		},
		"privileged init container": {podConfig(corev1.PodSpec{InitContainers: []corev1.Container{{
			Name: "setup", SecurityContext: &corev1.SecurityContext{Privileged: new(true)},
		}}}), Privileged, "setup"},
		"files, by a ControllerConfig": {FromControllerConfig(&v1alpha1.ControllerConfig{Spec: v1alpha1.ControllerConfigSpec{
			Volumes: []corev1.Volume{hostPath},
		}}), HostPath, "volume node"},
		"privileged, by a ControllerConfig": {
			FromControllerConfig(&v1alpha1.ControllerConfig{Spec: v1alpha1.ControllerConfigSpec{
				SecurityContext: &corev1.SecurityContext{Privileged: new(true)},
			}}), Privileged, "privileged container",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := provider()
			in.Config = tc.config
			o := build(t, in)
			err := o.CheckPrivileges(nil)
			if !errors.Is(err, ErrPrivileges) || !strings.Contains(err.Error(), tc.named) ||
				!strings.Contains(err.Error(), "provider/provider-aws") {
				t.Errorf("got %v, want one that names %q", err, tc.named)
			}
			if err := o.CheckPrivileges([]Privilege{tc.needs}); err != nil {
				t.Errorf("allowed: %v", err)
			}
			for _, other := range AllPrivileges() {
				if other != tc.needs && o.CheckPrivileges([]Privilege{other}) == nil {
					t.Errorf("%s allows it", other)
				}
			}
		})
	}
}

// Every way in which a pod reads a Secret needs the privilege for the certificates of others.
func TestCertificatesOfOthersNeedAPrivilege(t *testing.T) {
	ways := map[string]func(secret string) corev1.PodSpec{
		"volume": func(secret string) corev1.PodSpec {
			return corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
				Secret: &corev1.SecretVolumeSource{SecretName: secret},
			}}}}
		},
		"projected": func(secret string) corev1.PodSpec {
			source := corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{
				Name: secret,
			}}}
			return corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
				Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{source}},
			}}}}
		},
		"envFrom": func(secret string) corev1.PodSpec {
			from := corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{
				Name: secret,
			}}}
			return corev1.PodSpec{Containers: []corev1.Container{{
				Name: "sidecar", Image: "registry.example.org/sidecar:v1", EnvFrom: []corev1.EnvFromSource{from},
			}}}
		},
		"env": func(secret string) corev1.PodSpec {
			key := &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: "tls.key"}
			return corev1.PodSpec{InitContainers: []corev1.Container{{
				Name: "setup", Image: "registry.example.org/setup:v1",
				Env: []corev1.EnvVar{{Name: "KEY", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: key}}},
			}}}
		},
	}
	for secret, allowed := range map[string]bool{
		v1.RootCASecretName: false, "crossplane-tls-server": false, "provider-gcp-tls-client": false,
		"function-x-tls-server":   false,
		"provider-aws-tls-server": true, "provider-aws-tls-client": true, "aws-credentials": true,
	} {
		for way, pod := range ways {
			in := provider()
			in.Config = podConfig(pod(secret))
			o := build(t, in)
			if err := o.CheckPrivileges(nil); (err == nil) != allowed || err != nil && !strings.Contains(err.Error(), secret) {
				t.Errorf("%s, %s: %v", secret, way, err)
			}
			if err := o.CheckPrivileges([]Privilege{Certificates}); err != nil {
				t.Errorf("%s, %s, allowed: %v", secret, way, err)
			}
		}
	}
}

func TestOrdinaryConfigurationsNeedNoPrivileges(t *testing.T) {
	for name, config := range map[string]*v1beta1.DeploymentRuntimeConfig{
		"none": nil,
		"default capability": securityConfig(corev1.SecurityContext{Capabilities: &corev1.Capabilities{
			Add: []corev1.Capability{"NET_BIND_SERVICE"}, Drop: []corev1.Capability{"ALL"},
		}}),
		"sidecar":   containers(corev1.Container{Name: "sidecar", Image: "registry.example.org/sidecar:v1"}),
		"read-only": securityConfig(corev1.SecurityContext{ReadOnlyRootFilesystem: new(true), Privileged: new(false)}),
	} {
		in := provider()
		in.Config = config
		if err := build(t, in).CheckPrivileges(nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestParsePrivileges(t *testing.T) {
	if got, err := ParsePrivileges([]string{"HostPID", "*"}); err != nil || len(got) != len(AllPrivileges()) {
		t.Errorf("all: %v, %v", got, err)
	}
	if got, err := ParsePrivileges([]string{"HostPID"}); err != nil || len(got) != 1 || got[0] != HostPID {
		t.Errorf("one: %v, %v", got, err)
	}
	if _, err := ParsePrivileges([]string{"hostpid"}); err == nil {
		t.Error("an unknown name is accepted")
	}
}
