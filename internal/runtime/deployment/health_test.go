package deployment_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1alpha1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/deployment"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// configurations returns the configurations of the golden files of the manifests.
func configurations(t *testing.T) map[string]*v1beta1.DeploymentRuntimeConfig {
	t.Helper()
	every, old := &v1beta1.DeploymentRuntimeConfig{}, &v1alpha1.ControllerConfig{}
	for name, into := range map[string]any{"config.yaml": every, "controllerconfig.yaml": old} {
		raw, err := os.ReadFile(filepath.Join("..", "manifests", "testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(raw, into); err != nil {
			t.Fatal(err)
		}
	}
	return map[string]*v1beta1.DeploymentRuntimeConfig{
		"Defaults": nil, "Config": every, "ControllerConfig": manifests.FromControllerConfig(old),
	}
}

// The message contains the failures that the pods report.
func TestMessageReportsPodFailures(t *testing.T) {
	waiting := func(reason, message string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	}
	ended := func(t corev1.ContainerStateTerminated) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &t}
	}
	cases := map[string]struct {
		status  corev1.ContainerStatus
		reason  string
		message string
	}{
		"NoSuchImage": {
			corev1.ContainerStatus{State: waiting("ImagePullBackOff", "manifest unknown")},
			deployment.ReasonImage, "container package-runtime: manifest unknown",
		},
		"Crash": {
			corev1.ContainerStatus{
				State: waiting("CrashLoopBackOff", "back-off 10s"), RestartCount: 1,
				LastTerminationState: ended(corev1.ContainerStateTerminated{ExitCode: 3}),
			},
			runtime.ReasonCrashed, "it exited with code 3",
		},
		"OutOfMemory": {
			corev1.ContainerStatus{
				State: waiting("CrashLoopBackOff", "back-off 10s"), RestartCount: 3,
				LastTerminationState: ended(corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}),
			},
			runtime.ReasonCrashLoop, "more memory than its limit",
		},
		"NoSecret": {
			corev1.ContainerStatus{State: waiting("CreateContainerConfigError", `secret "x" not found`)},
			deployment.ReasonContainer, `secret "x" not found`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t)
			_, who := s.pkg("Provider", "p", "1")
			in := s.input(who[0])
			tc.status.Name = manifests.Container
			wait.Until(t, env.Limit, tc.message, func() (string, bool) {
				state := s.ensure(in)
				for _, p := range s.pods(who[0].Revision.Name) {
					s.report(&p, corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{tc.status}})
				}
				return state.Message, !state.Available && state.Reason == tc.reason && strings.Contains(state.Message, tc.message)
			})
		})
	}
}

// Pods that cannot be created are a failure of the cluster, not of the runtime.
//
// hardening: I-11
func TestMessageReportsWhyPodsAreNotCreated(t *testing.T) {
	s := newEnv(t)
	s.runtime.Privileges = manifests.AllPrivileges()
	_, who := s.pkg("Provider", "p", "1")
	in := s.input(who[0])
	in.Config = named("", "")
	in.Config.Spec.DeploymentTemplate = accountOf("missing")
	wait.Until(t, env.Limit, "the message names the ServiceAccount", func() (string, bool) {
		state := s.ensure(in)
		return state.Message, strings.Contains(state.Message, `serviceaccount "missing" not found`)
	})
}

// A namespace that enforces Pod Security rejects the pods of a runtime without the required settings: the message
// contains the reason, and repeated looks at the runtime write nothing.
//
// hardening: I-11
func TestMessageReportsWhyPodSecurityRejectsPods(t *testing.T) {
	s := newEnv(t)
	namespace := &corev1.Namespace{}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: s.name}, namespace); err != nil {
		t.Fatal(err)
	}
	namespace.Labels = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
	if err := s.Client.Update(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	_, who := s.pkg("Provider", "p", "1")
	in := s.input(who[0])
	privileged := true
	in.Config = named("", "")
	in.Config.Spec.DeploymentTemplate = &v1beta1.DeploymentTemplate{
		Spec: &appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: manifests.Container, SecurityContext: &corev1.SecurityContext{
				Privileged: &privileged,
			}}},
		}}}}
	s.runtime.Privileges = manifests.AllPrivileges()
	wait.Until(t, env.Limit, "the message has the reason", func() (string, bool) {
		state := s.ensure(in)
		return state.Message, strings.Contains(state.Message, `violates PodSecurity "restricted`)
	})
	s.takeWrites()
	for range 3 {
		s.ensure(in)
	}
	if got := s.takeWrites(); len(got) > 0 {
		t.Errorf("a runtime without pods is written again: %v", got)
	}
}

// Edge case 100.
func TestNewDeploymentIsNotReported(t *testing.T) {
	s := newEnv(t)
	_, who := s.pkg("Provider", "p", "1")
	if state := s.ensure(s.input(who[0])); state.Available || state.Reason == "" || state.Message == "" {
		t.Errorf("state %+v, want one that says why it is not available", state)
	}
	idle := s.input(who[0])
	idle.AwaitingActivation = true
	if state := s.ensure(idle); !state.Available {
		t.Errorf("state %+v of a program that is to have no pods, want available", state)
	}
}

// accountOf returns a template with a ServiceAccount that is managed elsewhere.
func accountOf(name string) *v1beta1.DeploymentTemplate {
	return &v1beta1.DeploymentTemplate{Spec: &appsv1.DeploymentSpec{
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{ServiceAccountName: name}},
	}}
}
